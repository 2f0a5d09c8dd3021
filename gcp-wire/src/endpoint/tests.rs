use super::*;

fn from_env(value: &str) -> Result<Option<String>, EndpointError> {
    Endpoint::emulator_from_value("PUBSUB_EMULATOR_HOST", Some(value.into()))
        .map(|endpoint| endpoint.map(|endpoint| endpoint.to_string()))
}

/// An error of the variable's value, as the variable's.
fn of_variable(cause: EndpointError) -> EndpointError {
    EndpointError::Variable {
        variable: "PUBSUB_EMULATOR_HOST",
        cause: Box::new(cause),
    }
}

#[test]
fn production_and_regional_hosts_are_the_documented_ones() {
    let hosts = [
        Endpoint::production(Service::Pubsub),
        Endpoint::production(Service::CloudTasks),
        Endpoint::regional(Service::Pubsub, "us-central1").unwrap(),
        Endpoint::regional(Service::CloudTasks, "us-central1").unwrap(),
    ]
    .map(|endpoint| endpoint.to_string());
    assert_eq!(
        hosts,
        [
            "https://pubsub.googleapis.com:443",
            "https://cloudtasks.googleapis.com:443",
            "https://us-central1-pubsub.googleapis.com:443",
            "https://cloudtasks.us-central1.rep.googleapis.com:443",
        ]
    );
    for region in [
        "",
        "US-central1",
        "us.central1",
        "us central1",
        "-x",
        "a/b",
        "eu:443",
    ] {
        assert_eq!(
            Endpoint::regional(Service::Pubsub, region).unwrap_err(),
            EndpointError::Region {
                value: region.to_owned()
            }
        );
    }
}

#[test]
fn an_unset_and_an_empty_variable_both_mean_no_emulator() {
    assert!(Endpoint::emulator_from_value("X", None).unwrap().is_none());
    assert_eq!(from_env("").unwrap(), None);
}

#[test]
fn the_variable_may_carry_a_scheme_and_one_trailing_slash() {
    for value in [
        "localhost:8085",
        "http://localhost:8085",
        "http://localhost:8085/",
    ] {
        assert_eq!(
            from_env(value).unwrap().as_deref(),
            Some("http://localhost:8085"),
            "{value}"
        );
    }
    assert_eq!(
        from_env("127.0.0.1:8085").unwrap().as_deref(),
        Some("http://127.0.0.1:8085")
    );
    assert_eq!(
        from_env("[::1]:8085").unwrap().as_deref(),
        Some("http://[::1]:8085")
    );
    let twice = "http://localhost:8085//".to_owned();
    assert_eq!(
        from_env(&twice).unwrap_err(),
        of_variable(EndpointError::Port { value: twice })
    );
}

#[test]
fn a_malformed_variable_is_an_error_that_quotes_it_and_the_form() {
    let cases = [
        (
            "::1:8085",
            EndpointError::UnbracketedIpv6 {
                value: "::1:8085".into(),
            },
            "[address]:port",
        ),
        (
            "localhost",
            EndpointError::MissingPort {
                value: "localhost".into(),
            },
            "host:port",
        ),
        (
            "https://x:1",
            EndpointError::Scheme {
                value: "https://x:1".into(),
            },
            "host:port",
        ),
        (
            " localhost:8085 ",
            EndpointError::Whitespace {
                value: " localhost:8085 ".into(),
            },
            "host:port",
        ),
        (
            " ",
            EndpointError::Whitespace { value: " ".into() },
            "host:port",
        ),
    ];
    for (value, expected, form) in cases {
        let error = from_env(value).unwrap_err();
        let text = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            text.contains(&format!("{value:?}")) && text.contains(form),
            "{text}"
        );
        assert!(
            error.to_string().contains("PUBSUB_EMULATOR_HOST"),
            "{error}"
        );
        assert_eq!(error, of_variable(expected));
    }
}

#[test]
fn an_explicit_emulator_is_parsed_strictly() {
    for good in [
        "localhost:8085",
        "127.0.0.1:1",
        "[::1]:65535",
        "pubsub_emulator:8085",
        "a.b.:1",
    ] {
        let endpoint = Endpoint::emulator(good).unwrap();
        assert_eq!(endpoint.to_string(), format!("http://{good}"));
        assert!(endpoint.is_emulator());
    }
    for bad in [
        "http://localhost:8085",
        "localhost:8085/",
        "localhost:",
        "localhost:0",
        "localhost:65536",
        "localhost:+80",
        "localhost:8o85",
        ":8085",
        "a b:1",
        "user@host:1",
        "-a:1",
        "a..b:1",
        "[::1]",
        "[::1",
        "[::1]8085",
        "[nonsense]:1",
        "",
        "\t",
    ] {
        let error = Endpoint::emulator(bad).unwrap_err();
        assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
    }
}

#[test]
fn a_tls_endpoint_is_no_emulator() {
    assert!(!Endpoint::tls("pubsub.example:443").unwrap().is_emulator());
    assert!(!Endpoint::production(Service::Pubsub).is_emulator());
    assert!(Endpoint::in_memory(|| Ok(tokio::io::duplex(1).0)).is_emulator());
}

#[test]
fn a_bundle_without_a_certificate_is_an_error() {
    let endpoint = || Endpoint::tls("localhost:443").unwrap();
    for pem in [
        "",
        "no pem at all",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
    ] {
        assert_eq!(
            endpoint().ca_pem(pem).unwrap_err(),
            EndpointError::NoCertificate
        );
    }
    let damaged = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    assert_eq!(
        endpoint().ca_pem(damaged).unwrap_err(),
        EndpointError::DamagedCertificate { position: 1 }
    );
}

#[test]
fn a_ca_on_a_plaintext_endpoint_is_an_error_and_not_ignored() {
    let error = Endpoint::emulator("localhost:1")
        .unwrap()
        .ca_file("ca.pem")
        .unwrap_err();
    assert_eq!(
        error,
        EndpointError::CaWithoutTls {
            endpoint: "http://localhost:1".to_owned()
        }
    );
}
