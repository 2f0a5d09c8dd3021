use super::*;

fn customers(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("c-{index}")).collect()
}

fn routed(count: usize, share: &str) -> usize {
    let customers = customers(count);
    let routes = Routes::spread(&customers, "http://127.0.0.1:9", share.parse().unwrap());
    customers
        .iter()
        .filter(|customer| routes.of(customer).is_some())
        .count()
}

#[test]
fn a_share_of_the_customers_has_no_route() {
    assert_eq!(routed(200, "0"), 200);
    assert_eq!(routed(200, "0.1"), 180);
    assert_eq!(
        routed(200, "0.001"),
        199,
        "a share above nothing leaves at least one out"
    );
    assert_eq!(routed(200, "1"), 0);
}

#[test]
fn what_is_no_share_is_refused_with_its_text() {
    for text in ["", "ten", "-0.1", "1.01", "NaN", "inf"] {
        let error = text.parse::<Share>().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{text:?} is no share")),
            "{error}"
        );
    }
}

#[test]
fn an_endpoint_is_below_the_partners_origin() {
    let routes = Routes::spread(&customers(10), "http://127.0.0.1:9", "0".parse().unwrap());
    let route = routes.of("c-7").unwrap();
    assert_eq!(route.endpoint, "http://127.0.0.1:9/cobalt");
    assert_eq!(route.tenant, "shop-cobalt-1");
}
