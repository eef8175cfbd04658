//! Whether a private key belongs to a certificate, as far as the two show it.
//!
//! An RSA key repeats the modulus of the public key, and an EC key usually the public point; these are compared. Keys
//! that show nothing (Ed25519, an EC key without its point) are taken as they are.

use x509_parser::{pem::Pem, public_key::PublicKey};

const RSA: &[&[u8]] = &[
    // rsaEncryption and id-RSASSA-PSS (RFC 8017).
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a],
];
/// id-ecPublicKey (RFC 5480).
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[1]` of RFC 5915, which holds the public key.
const EC_PUBLIC: u8 = 0xa1;

/// What a private key shows of its public half.
#[derive(Debug, PartialEq, Eq)]
enum Shown<'a> {
    Rsa(&'a [u8]),
    Ec(Option<&'a [u8]>),
    Nothing,
}

/// What the two show of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Match,
    /// The key shows nothing to compare.
    Possible,
    Mismatch,
}

/// Whether the key belongs to the certificate; `None` when the key is malformed.
pub(crate) fn judge(public: &PublicKey<'_>, private: &Pem) -> Option<Verdict> {
    let is_same = match (public, show(private)?) {
        (PublicKey::RSA(key), Shown::Rsa(modulus)) => trim(key.modulus) == trim(modulus),
        (PublicKey::EC(key), Shown::Ec(Some(point))) => key.data() == point,
        (PublicKey::RSA(_), Shown::Ec(_)) | (PublicKey::EC(_), Shown::Rsa(_)) => false,
        _ => return Some(Verdict::Possible),
    };
    Some(if is_same {
        Verdict::Match
    } else {
        Verdict::Mismatch
    })
}

fn show(key: &Pem) -> Option<Shown<'_>> {
    let der = &key.contents;
    match key.label.as_str() {
        "RSA PRIVATE KEY" => rsa(der),
        "EC PRIVATE KEY" => ec(der),
        "PRIVATE KEY" => pkcs8(der),
        _ => None,
    }
}

/// RFC 5208: version, algorithm, key.
fn pkcs8(der: &[u8]) -> Option<Shown<'_>> {
    let rest = expect(der, SEQUENCE)?.0;
    let (_, rest) = expect(rest, INTEGER)?;
    let (algorithm, rest) = expect(rest, SEQUENCE)?;
    let (oid, _) = expect(algorithm, OID)?;
    let (key, _) = expect(rest, OCTET_STRING)?;
    if RSA.contains(&oid) {
        rsa(key)
    } else if oid == EC {
        ec(key)
    } else {
        Some(Shown::Nothing)
    }
}

/// RFC 8017: version, modulus, …
fn rsa(der: &[u8]) -> Option<Shown<'_>> {
    let (rest, _) = expect(der, SEQUENCE)?;
    let (_, rest) = expect(rest, INTEGER)?;
    let (modulus, _) = expect(rest, INTEGER)?;
    Some(Shown::Rsa(modulus))
}

/// RFC 5915: version, private key, parameters in `[0]`, public key in `[1]`, the last two being optional.
fn ec(der: &[u8]) -> Option<Shown<'_>> {
    let (rest, _) = expect(der, SEQUENCE)?;
    let (_, rest) = expect(rest, INTEGER)?;
    let (_, mut rest) = expect(rest, OCTET_STRING)?;
    while let Some((tag, content, after)) = element(rest) {
        if tag == EC_PUBLIC {
            let (bits, _) = expect(content, BIT_STRING)?;
            return Some(Shown::Ec(bits.get(1..)));
        }
        rest = after;
    }
    Some(Shown::Ec(None))
}

/// The content of an element that has to have this tag, and what follows it.
fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(der)
        .filter(|(found, ..)| *found == tag)
        .map(|(_, content, rest)| (content, rest))
}

/// Tag and content of the first element (X.690, definite lengths), and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.is_empty() || bytes.len() > 4 {
            return None;
        }
        let length = bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Without the zeros that keep a number positive.
fn trim(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(label: &str, contents: &[u8]) -> Pem {
        Pem {
            label: label.into(),
            contents: contents.into(),
        }
    }

    #[test]
    fn keys_of_either_form_are_read() {
        let rsa = [SEQUENCE, 6, INTEGER, 1, 0, INTEGER, 1, 77];
        assert_eq!(show(&pem("RSA PRIVATE KEY", &rsa)), Some(Shown::Rsa(&[77])));
        let mut pkcs8 = vec![SEQUENCE, 26, INTEGER, 1, 0, SEQUENCE, 11, OID, 9];
        pkcs8.extend(RSA[0]);
        pkcs8.extend([OCTET_STRING, 8]);
        pkcs8.extend(rsa);
        assert_eq!(show(&pem("PRIVATE KEY", &pkcs8)), Some(Shown::Rsa(&[77])));

        let ec = [
            SEQUENCE,
            12,
            INTEGER,
            1,
            1,
            OCTET_STRING,
            1,
            9,
            0xa1,
            4,
            BIT_STRING,
            2,
            0,
            5,
        ];
        assert_eq!(
            show(&pem("EC PRIVATE KEY", &ec)),
            Some(Shown::Ec(Some(&[5])))
        );
        let bare = [SEQUENCE, 6, INTEGER, 1, 1, OCTET_STRING, 1, 9];
        assert_eq!(show(&pem("EC PRIVATE KEY", &bare)), Some(Shown::Ec(None)));
    }

    #[test]
    fn malformed_keys_are_none() {
        for contents in [
            &[][..],
            &[SEQUENCE],
            &[SEQUENCE, 200],
            &[SEQUENCE, 0x80],
            &[SEQUENCE, 0x85, 1, 1, 1, 1, 1],
            &[SEQUENCE, 3, INTEGER, 9, 0],
            &[INTEGER, 1, 0],
        ] {
            for label in ["RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"] {
                assert_eq!(show(&pem(label, contents)), None, "{label} {contents:?}");
            }
        }
        assert_eq!(show(&pem("ENCRYPTED PRIVATE KEY", &[])), None);
    }
}
