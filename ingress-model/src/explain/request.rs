//! A request as NGINX sees it before it looks for a server and a location.

use thiserror::Error;

/// Why NGINX answers 400 to a path, whatever is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// It does not begin with a slash.
    #[error("a path begins with /")]
    NoSlash,
    /// `%` without two hexadecimal digits behind it.
    #[error("% has to be followed by two hexadecimal digits")]
    Percent,
    /// `%00`.
    #[error("%00 may not stand in a path")]
    Nul,
    /// More `..` than there are directories.
    #[error("it leads above the root")]
    AboveRoot,
}

/// The path that locations are compared with: without query and fragment, percent-encoding decoded, runs of slashes
/// made one, `.` and `..` resolved (NGINX docs: `location`, `merge_slashes`).
///
/// ```
/// use ingress_model::explain::{PathError, request_path};
///
/// assert_eq!(request_path("/shop//cart/./x/../%61?page=2").unwrap(), b"/shop/cart/a");
/// assert_eq!(request_path("/shop/.."), Ok(b"/".to_vec()));
/// assert_eq!(request_path("/.."), Err(PathError::AboveRoot));
/// ```
///
/// # Errors
/// When NGINX would answer 400.
pub fn request_path(text: &str) -> Result<Vec<u8>, PathError> {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let decoded = decode(text)?;
    let Some(below) = decoded.strip_prefix(b"/") else {
        return Err(PathError::NoSlash);
    };
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut is_directory = true;
    for segment in below.split(|byte| *byte == b'/') {
        is_directory = true;
        match segment {
            b"" | b"." => {}
            b".." => {
                segments.pop().ok_or(PathError::AboveRoot)?;
            }
            segment => {
                segments.push(segment);
                is_directory = false;
            }
        }
    }
    let mut path = vec![b'/'];
    path.extend(segments.join(&b'/'));
    if is_directory && !segments.is_empty() {
        path.push(b'/');
    }
    Ok(path)
}

fn decode(text: &str) -> Result<Vec<u8>, PathError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(PathError::Percent);
        };
        match u8::try_from(high * 16 + low) {
            Ok(0) | Err(_) => return Err(PathError::Nul),
            Ok(byte) => decoded.push(byte),
        }
    }
    Ok(decoded)
}

/// The host that server names are compared with: lower case, without port and final dot.
///
/// ```
/// use ingress_model::explain::request_host;
///
/// assert_eq!(request_host("Shop.Test.:8080"), "shop.test");
/// assert_eq!(request_host("[2001:db8::1]:80"), "[2001:db8::1]");
/// ```
#[must_use]
pub fn request_host(text: &str) -> String {
    let host = match text.find(']') {
        Some(end) => text.get(..=end),
        None => text.split(':').next(),
    };
    let host = host.unwrap_or(text);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_or_refused() {
        for (text, want) in [
            ("/", Ok("/")),
            ("/a", Ok("/a")),
            ("/a/", Ok("/a/")),
            ("//a///b//", Ok("/a/b/")),
            ("/a/.", Ok("/a/")),
            ("/a/..", Ok("/")),
            ("/a/../", Ok("/")),
            ("/a/b/../c", Ok("/a/c")),
            ("/a//../b", Ok("/b")),
            ("/.a/..b", Ok("/.a/..b")),
            ("/%2e%2E/", Err(PathError::AboveRoot)),
            ("/a%2fb", Ok("/a/b")),
            ("/a%3Fb", Ok("/a?b")),
            ("/..%3F", Ok("/..?")),
            ("/a%2541", Ok("/a%41")),
            ("/a+b c", Ok("/a+b c")),
            ("/ä", Ok("/ä")),
            ("/%c3%a4", Ok("/ä")),
            ("/a?/../../..", Ok("/a")),
            ("/a#/b", Ok("/a")),
            ("/%", Err(PathError::Percent)),
            ("/%4", Err(PathError::Percent)),
            ("/%zz", Err(PathError::Percent)),
            ("/%00", Err(PathError::Nul)),
            ("/../a", Err(PathError::AboveRoot)),
            ("a", Err(PathError::NoSlash)),
            ("", Err(PathError::NoSlash)),
        ] {
            let want = want.map(|path| path.as_bytes().to_vec());
            assert_eq!(request_path(text), want, "{text}");
        }
    }
}
