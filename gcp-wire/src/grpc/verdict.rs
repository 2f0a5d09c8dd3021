use http::HeaderMap;
use percent_encoding::percent_decode;

use crate::headers::STATUS;
use crate::status::{Cause, Code, DecodeFault, Details};

/// The server's verdict, from trailers or from the headers of an answer without messages.
pub(crate) fn head_status(headers: &HeaderMap) -> Option<Result<(), Cause>> {
    let code = headers.get(&STATUS)?;
    if code.as_bytes() == b"0" {
        return Some(Ok(()));
    }
    let code = code
        .to_str()
        .ok()
        .and_then(|code| code.parse().ok())
        .map_or(Code::Unknown, Code::from_number);
    if code == Code::Ok {
        return Some(Ok(()));
    }
    let message = headers
        .get("grpc-message")
        .map_or_else(String::new, |message| {
            crate::status::bounded(&percent_decode(message.as_bytes()).decode_utf8_lossy())
        });
    let details = match headers.get("grpc-status-details-bin") {
        None => Details::default(),
        Some(details) => match Details::from_header(details.as_bytes()) {
            Ok(details) => details,
            Err(_) => {
                return Some(Err(Cause::Decode {
                    fault: DecodeFault::Details,
                    code,
                }));
            }
        },
    };
    Some(Err(Cause::Status {
        code,
        message,
        details,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_status_message_is_percent_decoded() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "3".parse().unwrap());
        headers.insert("grpc-message", "caf%C3%A9 %zz %ff".parse().unwrap());
        let Some(Err(Cause::Status { code, message, .. })) = head_status(&headers) else {
            panic!("no status")
        };
        assert_eq!(
            (code, message.as_str()),
            (Code::InvalidArgument, "café %zz \u{fffd}")
        );
    }

    #[test]
    fn a_status_that_is_no_number_is_unknown_and_not_success() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "zero".parse().unwrap());
        let verdict = head_status(&headers).unwrap().unwrap_err();
        assert!(
            matches!(
                verdict,
                Cause::Status {
                    code: Code::Unknown,
                    ..
                }
            ),
            "{verdict:?}"
        );
    }

    proptest! {
        #[test]
        fn no_headers_make_the_status_panic(
            status in "\\PC{0,8}", message in "\\PC{0,20}", details in "[A-Za-z0-9+/=]{0,40}",
        ) {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                ("grpc-status", status.into_bytes()),
                ("grpc-message", message.into_bytes()),
                ("grpc-status-details-bin", details.into_bytes()),
            ] {
                if let Ok(value) = http::HeaderValue::from_bytes(&value) {
                    headers.insert(name, value);
                }
            }
            prop_assert_eq!(head_status(&headers).is_some(), headers.contains_key("grpc-status"));
        }
    }
}
