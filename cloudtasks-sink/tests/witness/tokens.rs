//! Identity tokens, verified as a called server would: through the issuer's discovery document.

use std::net::SocketAddr;

use cloudtasks_sink::{Batch, Endpoint, HttpTask};
use futures::SinkExt;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::servers::{Call, next, target, tasks, witness_at};

const ACCOUNT: &str = "caller@demo.iam.gserviceaccount.com";

/// The document at a path of the issuer.
async fn document(issuer: SocketAddr, path: &str) -> Value {
    let mut stream = TcpStream::connect(issuer).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {issuer}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}

/// The claims of a call's token, once its signature is that of the key which the issuer publishes.
pub(crate) async fn claims(issuer: SocketAddr, call: &Call) -> Value {
    let token = call.headers["authorization"]
        .strip_prefix("Bearer ")
        .unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (head, body) = signed.split_once('.').unwrap();
    let head: Value = serde_json::from_slice(&base64_url(head)).unwrap();
    assert_eq!(head["alg"], "RS256");
    let discovery = document(issuer, "/.well-known/openid-configuration").await;
    let url = format!("http://{issuer}");
    assert_eq!(discovery["issuer"], url.as_str());
    let keys_at = discovery["jwks_uri"].as_str().unwrap();
    let keys = document(issuer, keys_at.strip_prefix(&url).unwrap()).await;
    let keys = keys["keys"].as_array().unwrap();
    let key = keys.iter().find(|key| key["kid"] == head["kid"]).unwrap();
    let key = RsaPublicKeyComponents {
        n: base64_url(key["n"].as_str().unwrap()),
        e: base64_url(key["e"].as_str().unwrap()),
    };
    key.verify(
        &RSA_PKCS1_2048_8192_SHA256,
        signed.as_bytes(),
        &base64_url(signature),
    )
    .expect("the token is signed by the key that the issuer publishes");
    let claims: Value = serde_json::from_slice(&base64_url(body)).unwrap();
    assert_eq!(claims["iss"], url.as_str());
    claims
}

#[tokio::test]
async fn a_call_carries_a_token_of_the_account_for_the_audience() {
    for size in [None, Some(Batch::up_to(100))] {
        let (address, mut calls) = target().await;
        let issuer = witness_at().await;
        let mut sink = tasks(Endpoint::emulator(&issuer.to_string()).unwrap());
        if let Some(size) = size {
            sink = sink.batching(size);
        }
        let mut sink = sink.build().unwrap();
        let url = format!("http://{address}/orders?dry=run");
        let task = || HttpTask::post(url.as_str()).unwrap();
        sink.send(task().oidc(ACCOUNT, Some("https://audience.example")))
            .await
            .unwrap();
        let given = claims(issuer, &next(&mut calls).await).await;
        assert_eq!(given["aud"], "https://audience.example");
        assert_eq!(given["email"], ACCOUNT);
        sink.send(task().oidc(ACCOUNT, None)).await.unwrap();
        let given = claims(issuer, &next(&mut calls).await).await;
        assert_eq!(given["aud"], url.as_str(), "the whole URL, its query too");
    }
}

/// Decodes the part of a token that is base64 in its URL alphabet, without padding.
fn base64_url(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        other => panic!("{other}"),
    };
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0u32, 0);
    for byte in text.bytes() {
        bits = bits << 6 | u32::from(value(byte));
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    bytes
}
