//! The certificate for hosts without one of their own, made anew at each start.

use ingress_model::live::{Certificate, CertificateId};
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};

/// How long it is valid: there is a new one at each start.
const VALID_DAYS: i64 = 365;

/// Makes a self-signed certificate that says of itself that it is none to trust, with a key of the curve P-256.
///
/// # Errors
///
/// When the system has no randomness to make a key from.
pub fn generate(now: Timestamp) -> Result<Certificate, rcgen::Error> {
    let mut params = CertificateParams::new(["ingress.local".to_owned()])?;
    let name = &mut params.distinguished_name;
    *name = rcgen::DistinguishedName::new();
    name.push(DnType::OrganizationName, "Acme Co");
    name.push(
        DnType::CommonName,
        "Kubernetes Ingress Controller Fake Certificate",
    );
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];

    let midnight = |date: Date| {
        // The months and days of a date are in range.
        let number = |number: i8| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(date.year().into(), number(date.month()), number(date.day()))
    };
    let today = now.to_zoned(TimeZone::UTC).date();
    params.not_before = midnight(today);
    params.not_after = midnight(today.saturating_add(VALID_DAYS.days()));

    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Certificate {
        id: CertificateId::new(CertificateId::GENERATED),
        pem: (certificate.pem() + &key.serialize_pem()).into(),
    })
}

#[cfg(test)]
mod tests {
    use x509_parser::{pem::parse_x509_pem, prelude::GeneralName};

    use super::*;

    #[test]
    fn the_certificate_says_what_it_is() {
        let now: Timestamp = "2026-11-30T05:00:00Z".parse().unwrap();
        let made = generate(now).unwrap();
        assert_eq!(made.id.as_str(), "00000000-0000-0000-0000-000000000000");
        let (rest, pem) = parse_x509_pem(made.pem.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        assert_eq!(
            certificate.subject().to_string(),
            "O=Acme Co, CN=Kubernetes Ingress Controller Fake Certificate"
        );
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(
            names.value.general_names,
            [GeneralName::DNSName("ingress.local")]
        );
        let validity = certificate.validity();
        let days = (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400;
        assert_eq!(days, 365);
        assert!(validity.not_before.timestamp() <= now.as_second());
        let (rest, key) = parse_x509_pem(rest).unwrap();
        assert_eq!((key.label.as_str(), rest.len()), ("PRIVATE KEY", 0));
    }

    #[test]
    fn each_start_has_its_own() {
        let now = Timestamp::UNIX_EPOCH;
        assert_ne!(generate(now).unwrap(), generate(now).unwrap());
    }
}
