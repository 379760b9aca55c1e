//! What a login under TLS is bound to: `tls-server-end-point` of RFC 5929, the hash of the
//! server's certificate, so that a login cannot be handed on by somebody in between.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// Hashes a certificate (DER) with the hash of its own signature; MD5 and SHA-1 count as SHA-256.
/// None where the standard defines nothing (Ed25519, RSASSA-PSS), as in libpq: SCRAM then goes on
/// without.
pub(crate) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    match signature_oid(certificate)? {
        // PKCS #1: md5, sha1, sha256, sha384, sha512 with RSA (RFC 8017, appendix C)
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, kind] => match kind {
            4 | 5 | 11 => Some(Sha256::digest(certificate).to_vec()),
            12 => Some(Sha384::digest(certificate).to_vec()),
            13 => Some(Sha512::digest(certificate).to_vec()),
            _ => None,
        },
        // ecdsa-with-SHA1 (RFC 3279)
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01] => Some(Sha256::digest(certificate).to_vec()),
        // ecdsa-with-SHA256, SHA384, SHA512 (RFC 5758)
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, kind] => match kind {
            2 => Some(Sha256::digest(certificate).to_vec()),
            3 => Some(Sha384::digest(certificate).to_vec()),
            4 => Some(Sha512::digest(certificate).to_vec()),
            _ => None,
        },
        _ => None,
    }
}

/// `Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OID, … }, … }`
fn signature_oid(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OID: u8 = 0x06;
    let (body, _) = element(certificate, SEQUENCE)?;
    let (_, behind) = element(body, SEQUENCE)?;
    let (algorithm, _) = element(behind, SEQUENCE)?;
    Some(element(algorithm, OID)?.0)
}

/// The content of the DER element that `bytes` begin with, and what is behind it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (len, rest) = match usize::from(first) {
        short @ ..0x80 => (short, rest),
        long => {
            let (digits, rest) =
                rest.split_at_checked(long - 0x80).filter(|(d, _)| d.len() <= 4)?;
            (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
        }
    };
    rest.split_at_checked(len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A certificate with this signature algorithm and nothing else of use.
    fn certificate(oid: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, parts: &[&[u8]]| {
            let content = parts.concat();
            let len = u16::try_from(content.len()).unwrap().to_be_bytes();
            [[tag, 0x82].as_slice(), &len, &content].concat()
        };
        let tbs = wrap(0x30, &[&[0; 300]]);
        let algorithm = wrap(0x30, &[&wrap(0x06, &[oid]), &[5, 0]]);
        wrap(0x30, &[&tbs, &algorithm, &[3, 1, 0]])
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let rsa = |kind| certificate(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, kind]);
        let ecdsa = |kind| certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, kind]);
        let len = |certificate: Vec<u8>| server_end_point(&certificate).map(|hash| hash.len());
        assert_eq!([4, 5, 11, 12, 13].map(|kind| len(rsa(kind))), [32, 32, 32, 48, 64].map(Some));
        assert_eq!([2, 3, 4].map(|kind| len(ecdsa(kind))), [32, 48, 64].map(Some));
        // RSASSA-PSS and Ed25519
        assert_eq!((len(rsa(10)), len(certificate(&[0x2b, 0x65, 0x70]))), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..64), at in 0_usize..64) {
            let mut certificate = certificate(&[0x2a]);
            for (at, byte) in (at..).zip(&bytes) {
                if let Some(place) = certificate.get_mut(at) {
                    *place = *byte;
                }
            }
            let _ = (server_end_point(&bytes), server_end_point(&certificate));
        }
    }
}
