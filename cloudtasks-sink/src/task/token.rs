//! The token that the service adds to a call.

use gcp_wire::proto::tasks::{OAuthToken, OidcToken, http_request::AuthorizationHeader};

use super::TaskError;
use super::error::excerpt;

/// A service account, and an audience or scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    account: String,
    /// Empty leaves the choice to the service.
    purpose: String,
}

impl Token {
    pub(super) fn new(account: String, purpose: Option<&str>) -> Self {
        Self {
            account,
            purpose: purpose.unwrap_or_default().to_owned(),
        }
    }

    /// The service refuses an account without exactly one `@` between two non-empty parts.
    pub(super) fn check(&self) -> Result<(), TaskError> {
        let is_email = self.account.split_once('@').is_some_and(|(name, domain)| {
            !name.is_empty() && !domain.is_empty() && !domain.contains('@')
        });
        if is_email {
            Ok(())
        } else {
            Err(TaskError::ServiceAccount {
                account: excerpt(&self.account),
            })
        }
    }
}

/// The one token there is; of two, which [`check`](super::HttpTask::check) refuses, the OIDC one.
pub(super) fn header(oidc: Option<Token>, oauth: Option<Token>) -> Option<AuthorizationHeader> {
    let oidc = oidc.map(|token| {
        AuthorizationHeader::OidcToken(OidcToken {
            service_account_email: token.account,
            audience: token.purpose,
        })
    });
    oidc.or_else(|| {
        oauth.map(|token| {
            AuthorizationHeader::OauthToken(OAuthToken {
                service_account_email: token.account,
                scope: token.purpose,
            })
        })
    })
}

/// The OIDC and the OAuth token of a message, of which it holds one at most.
pub(super) fn of_header(header: Option<AuthorizationHeader>) -> (Option<Token>, Option<Token>) {
    match header {
        None => (None, None),
        Some(AuthorizationHeader::OidcToken(token)) => {
            let audience = Some(token.audience.as_str());
            (
                Some(Token::new(token.service_account_email, audience)),
                None,
            )
        }
        Some(AuthorizationHeader::OauthToken(token)) => {
            let scope = Some(token.scope.as_str());
            (None, Some(Token::new(token.service_account_email, scope)))
        }
    }
}
