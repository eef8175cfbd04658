//! Passwords: basic and digest authentication.

use crate::{
    config::Risk,
    layout::{AuthScheme, BasicAuth},
    value::{Confidential, Literal},
};

use super::{
    UsersFormat,
    grammar::Grammar,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "auth-type",
        value: "`basic` or `digest`",
        default: "none",
        misuse: Misuse::Refuse,
        example: "basic",
        doc: "Asks for a user and a password. Without `auth-secret`, or empty beside it, it closes the paths.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-secret",
        needs: &[Need::given("auth-type")],
        value: "`name` or `namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "users",
        doc: "Secret with the users.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-secret-type",
        needs: &[Need::given("auth-type")],
        value: "`auth-file` or `auth-map`",
        default: "auth-file",
        misuse: Misuse::Deny,
        example: "auth-map",
        doc: "Whether the Secret holds one password file (`auth`) or one key a user.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-realm",
        needs: &[Need::given("auth-type")],
        value: "plain characters and spaces",
        default: "empty",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "Members only",
        doc: "Realm shown with the question for a password.",
        ..ANNOTATION
    },
];

const REALM: Grammar = Grammar::new("-._~/: ", "letters, digits, spaces and -._~/:");

/// Who is asked for a password, and how the Secret keeps the users; they are read from it later.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<(BasicAuth, UsersFormat)> {
    let schemes = [("basic", AuthScheme::Basic), ("digest", AuthScheme::Digest)];
    if reader.is_blank("auth-type") && reader.says("auth-secret") {
        reader.deny_because(
            "auth-type",
            "it is empty, while auth-secret names users to ask for a password",
        );
        return None;
    }
    let scheme = reader.word("auth-type", &schemes)?;
    if !reader.says("auth-secret") {
        reader.deny_because(
            "auth-type",
            "auth-secret is missing, which names the Secret with the users",
        );
        return None;
    }
    let formats = [
        ("auth-file", UsersFormat::File),
        ("auth-map", UsersFormat::Map),
    ];
    let realm = reader.literal("auth-realm", REALM);
    let auth = BasicAuth {
        scheme,
        // NGINX takes the realm "off" for "no question".
        realm: match realm {
            Some(realm) if realm.as_str() == "off" => Literal::constant("Off"),
            Some(realm) => realm,
            None => Literal::constant(""),
        },
        secret: reader.object("auth-secret")?,
        users: Confidential::new(""),
    };
    let format = reader
        .word("auth-secret-type", &formats)
        .unwrap_or(UsersFormat::File);
    Some((auth, format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::{
        IngressSettings,
        testing::{faults, settings},
    };

    fn read(more: &[(&str, &str)]) -> IngressSettings {
        let mut annotations = vec![("auth-type", "basic"), ("auth-secret", "users")];
        annotations.extend(more);
        settings(&annotations).unwrap()
    }

    #[test]
    fn secrets_of_the_own_namespace() {
        let settings = read(&[]);
        let auth = settings.location.basic_auth.as_ref().unwrap();
        assert_eq!(auth.scheme, AuthScheme::Basic);
        assert_eq!(auth.secret.to_string(), "shop/users");
        assert_eq!(settings.references.users, Some(UsersFormat::File));
        let map = read(&[("auth-secret-type", "auth-map")]);
        assert_eq!(map.references.users, Some(UsersFormat::Map));
    }

    #[test]
    fn whatever_is_unusable_closes_the_location() {
        for bad in [
            ("auth-secret", ""),
            ("auth-secret", "vault/users"),
            ("auth-secret", "a b"),
            ("auth-realm", "a\"; add_header X-Marker 1 always; #"),
            ("auth-secret-type", "xauth-filex"),
        ] {
            assert!(read(&[bad]).location.denied.is_some(), "{bad:?}");
        }
        let alone = settings(&[("auth-type", "basic")]).unwrap();
        assert!(alone.location.denied.is_some());
        assert_eq!(
            settings(&[("auth-type", "token"), ("auth-secret", "users")]),
            None
        );
        assert_eq!(
            settings(&[("auth-type", "xbasicx"), ("auth-secret", "users")]),
            None
        );
    }

    #[test]
    fn users_without_a_question_are_reported() {
        let secret = ("auth-secret", "users");
        let open = settings(&[secret]).unwrap();
        assert_eq!(open.location.basic_auth, None);
        assert_eq!(open.location.denied, None);
        let told = faults(&[secret]);
        assert!(
            told.len() == 1 && told[0].contains("protects nothing"),
            "{told:?}"
        );
        assert_eq!(faults(&[secret, ("auth-type", "basic")]), [""; 0]);
    }

    #[test]
    fn an_empty_type_opens_only_what_has_no_users() {
        let empty = ("auth-type", " ");
        let closed = |annotations: &[_]| settings(annotations).unwrap().location.denied.clone();
        assert_eq!(closed(&[empty]), None);
        assert_eq!(closed(&[empty, ("auth-secret", "")]), None);
        assert_eq!(faults(&[empty]).len(), 1);
        let guarded = [empty, ("auth-secret", "users")];
        assert!(closed(&guarded).is_some());
        assert_eq!(faults(&guarded).len(), 1);
    }

    #[test]
    fn one_fault_is_said_once() {
        for annotations in [
            &[("auth-type", "basic")][..],
            &[("auth-type", "basic"), ("auth-secret", "")],
            &[("auth-type", "basic"), ("auth-secret", "a b")],
            &[("auth-type", "token"), ("auth-secret", "users")],
        ] {
            assert_eq!(faults(annotations).len(), 1, "{annotations:?}");
        }
    }

    #[test]
    fn no_realm_switches_the_question_off() {
        let realm = |text| {
            let settings = read(&[("auth-realm", text)]);
            settings
                .location
                .basic_auth
                .as_ref()
                .unwrap()
                .realm
                .as_str()
                .to_owned()
        };
        assert_eq!(realm("off"), "Off");
        assert_eq!(realm("Members only"), "Members only");
    }
}
