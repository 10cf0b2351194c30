//! The guard's verdicts, in every spelling.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use url::Url;

use super::{AllowList, Denied, Guard, Kind, Reason, Target, address};

fn check(url: &str, allow: &[&str]) -> Result<(), Denied> {
    let url = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    Guard::default().check_url(&url, &AllowList::parse(allow).unwrap())
}

fn answers(url: &str, found: &[&str], allow: &[&str]) -> Result<usize, Denied> {
    let target = Target::of(&Url::parse(url).unwrap()).unwrap();
    let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
    let allow = AllowList::parse(allow).unwrap();
    Guard::default()
        .check_answers(&target, &found, &allow)
        .map(|addresses| addresses.len())
}

#[track_caller]
fn kind(url: &str) -> Kind {
    match check(url, &[]) {
        Err(Denied {
            reason: Reason::Address { block, .. },
            ..
        }) => block.kind,
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn an_address_is_refused_in_whatever_way_it_is_spelled() {
    for (url, expected) in [
        ("http://127.0.0.1/", Kind::Loopback),
        ("http://2130706433/", Kind::Loopback),
        ("http://017700000001/", Kind::Loopback),
        ("http://0x7f000001/", Kind::Loopback),
        ("http://0X7F.0.0.1/", Kind::Loopback),
        ("http://0177.0.0.1/", Kind::Loopback),
        ("http://127.1/", Kind::Loopback),
        ("http://127.0.1/", Kind::Loopback),
        ("http://0x7f.1/", Kind::Loopback),
        ("http://127.0.0.1./", Kind::Loopback),
        ("http://127.255.255.254/", Kind::Loopback),
        // Full-width digits and an ideographic full stop, which IDNA maps to ASCII.
        ("http://１２７。０。０。１/", Kind::Loopback),
        ("http://①②⑦.⓪.⓪.①/", Kind::Loopback),
        ("http://%31%32%37.0.0.1/", Kind::Loopback),
        ("http://user:pw@127.0.0.1/", Kind::Loopback),
        ("http://example.com@127.0.0.1/", Kind::Loopback),
        ("http://example.com:80@127.0.0.1/", Kind::Loopback),
        ("http:\\\\127.0.0.1\\", Kind::Loopback),
        ("http:127.0.0.1", Kind::Loopback),
        ("HTTP://127.0.0.1/", Kind::Loopback),
        ("http://[::1]/", Kind::Loopback),
        ("http://[0:0:0:0:0:0:0:1]/", Kind::Loopback),
        ("http://[::ffff:127.0.0.1]/", Kind::Loopback),
        ("http://[::ffff:7f00:1]/", Kind::Loopback),
        ("http://[::127.0.0.1]/", Kind::Loopback),
        ("http://[64:ff9b::127.0.0.1]/", Kind::Loopback),
        ("http://[64:ff9b:1::127.0.0.1]/", Kind::Loopback),
        ("http://[::ffff:0:127.0.0.1]/", Kind::Loopback),
        ("http://[2002:7f00:1::]/", Kind::Loopback),
        ("http://[2001::80ff:fffe]/", Kind::Loopback),
        ("http://[2001:0:808:808::80ff:fffe]/", Kind::Loopback),
        ("http://[2001:0:7f00:1::f7f7:f7f7]/", Kind::Loopback),
        ("http://169.254.169.254/", Kind::Metadata),
        ("http://169.254.169.254./", Kind::Metadata),
        ("http://2852039166/", Kind::Metadata),
        ("http://0xa9fea9fe/", Kind::Metadata),
        ("http://0251.0376.0251.0376/", Kind::Metadata),
        ("http://169.254.43518/", Kind::Metadata),
        ("http://169.16689662/", Kind::Metadata),
        ("http://[::ffff:169.254.169.254]/", Kind::Metadata),
        ("http://[::ffff:a9fe:a9fe]/", Kind::Metadata),
        ("http://[64:ff9b::a9fe:a9fe]/", Kind::Metadata),
        ("http://[2002:a9fe:a9fe::1]/", Kind::Metadata),
        ("http://[fd00:ec2::254]/", Kind::Metadata),
        ("http://[fd20:ce::254]/", Kind::Metadata),
        ("http://100.100.100.200/", Kind::Metadata),
        ("http://168.63.129.16/", Kind::Metadata),
        ("http://192.0.0.192/", Kind::Metadata),
        ("http://169.254.170.2/", Kind::Metadata),
        ("http://0/", Kind::Unspecified),
        ("http://0.0.0.0/", Kind::Unspecified),
        ("http://[::]/", Kind::Unspecified),
        ("http://[::0.0.0.0]/", Kind::Unspecified),
        ("http://[fe80::1]/", Kind::LinkLocal),
        ("http://10.0.0.1/", Kind::Private),
        ("http://[64:ff9b::a00:1]/", Kind::Private),
        ("http://[fc00::1]/", Kind::Private),
        ("http://[fec0::1]/", Kind::Private),
        ("http://255.255.255.255/", Kind::Reserved),
        ("http://[2002:808:808::1]/", Kind::Tunnel),
        ("http://[::8.8.8.8]/", Kind::Tunnel),
        ("http://[64:ff9b:1::808:808]/", Kind::Tunnel),
        ("http://[ff02::1]/", Kind::Multicast),
        ("http://[4000::1]/", Kind::Reserved),
        ("http://[8000::1]/", Kind::Reserved),
        ("http://[1::1]/", Kind::Reserved),
    ] {
        assert_eq!(kind(url), expected, "{url}");
    }
}

/// The two registries, with what each says about "globally reachable".
#[test]
fn the_registries_of_special_addresses_are_followed() {
    for refused in [
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.0",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.0.8",
        "192.0.0.170",
        "192.0.0.255",
        "192.0.2.0",
        "192.0.2.255",
        "192.88.99.0",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.0",
        "198.51.100.255",
        "203.0.113.0",
        "203.0.113.255",
        "224.0.0.0",
        "239.255.255.255",
        "240.0.0.0",
        "255.255.255.255",
        "::",
        "::1",
        "64:ff9b:1::1",
        "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
        "100::1",
        "100::ffff:ffff:ffff:ffff",
        "100:0:0:1::1",
        "2001::1",
        "2001:1::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:30::1",
        "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db8::1",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        "2002::1",
        "3fff::1",
        "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
        "5f00::1",
        "fc00::",
        "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "fe80::",
        "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "fec0::1",
        "ff00::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ] {
        let address: IpAddr = refused.parse().unwrap();
        assert!(
            Guard::default().check_address(address).is_err(),
            "{refused}"
        );
    }
    for allowed in [
        "1.0.0.0",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.31.196.1",
        "192.52.193.1",
        "192.167.255.255",
        "192.169.0.0",
        "192.175.48.1",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2000::1",
        "2001:200::1",
        "2001:db7::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700:4700::1111",
        "2620:4f:8000::1",
        "3ffe::1",
        "3fff:1000::1",
    ] {
        let address: IpAddr = allowed.parse().unwrap();
        assert_eq!(Guard::default().check_address(address), Ok(()), "{allowed}");
    }
}

#[test]
fn names_of_the_machine_and_of_the_cluster_are_refused_before_any_look_up() {
    for url in [
        "http://localhost/",
        "http://LOCALHOST./",
        "http://api.localhost/",
        "http://ｌｏｃａｌｈｏｓｔ/",
        "http://intranet/",
        "http://intranet./",
        "http://printer.local/",
        "http://metadata.google.internal/",
        "http://metadata.google.internal./",
        "http://kubernetes.default.svc/",
        "http://kubernetes.default.svc.cluster.local/",
        "http://localhost.localdomain/",
    ] {
        let denied = check(url, &[]).unwrap_err();
        assert!(matches!(denied.reason, Reason::Name { .. }), "{denied}");
    }
    let guard = Guard {
        cluster_domain: "k8s.example.com".to_owned(),
        ..Guard::default()
    };
    let verdict = |url: &str| guard.check_url(&Url::parse(url).unwrap(), &AllowList::default());
    assert!(verdict("http://a.b.svc.k8s.example.com/").is_err());
    assert!(verdict("http://k8s.example.com/").is_err());
    assert_eq!(verdict("http://notk8s.example.com/"), Ok(()));
    assert_eq!(verdict("http://api.example.com/"), Ok(()));
}

#[test]
fn public_targets_pass() {
    for url in [
        "http://134744072/",
        "https://8.8.8.8:8443/",
        "https://[2606:4700:4700::1111]/",
        "https://[64:ff9b::808:808]/",
        "https://api.example.com:8443/",
        "https://münchen.example/",
        "https://svc.example.com/",
        "https://local.example/",
    ] {
        assert_eq!(check(url, &[]), Ok(()), "{url}");
    }
}

#[test]
fn only_http_and_https_are_called() {
    for url in [
        "ftp://8.8.8.8/",
        "file:///etc/passwd",
        "gopher://8.8.8.8/",
        "ws://8.8.8.8/",
        "data:text/plain,a",
        "unix:/var/run/docker.sock",
    ] {
        let denied = check(url, &["8.8.8.8"]).unwrap_err();
        assert_eq!(denied.reason, Reason::Scheme, "{url}");
    }
}

#[test]
fn one_refused_answer_refuses_the_name() {
    let url = "https://api.example.com/";
    assert_eq!(answers(url, &["8.8.8.8", "2606:4700::1"], &[]), Ok(2));
    for mixed in [
        &["8.8.8.8", "10.0.0.1"][..],
        &["10.0.0.1", "8.8.8.8"],
        &["8.8.8.8", "::1"],
        &["8.8.8.8", "::ffff:10.0.0.1"],
        &["8.8.8.8", "64:ff9b::a9fe:a9fe"],
    ] {
        let denied = answers(url, mixed, &[]).unwrap_err();
        assert_eq!(denied.target, "api.example.com");
    }
}

#[test]
fn a_refusal_says_what_why_and_which_setting() {
    for (url, text) in [
        (
            "http://10.0.0.1:8080/",
            "10.0.0.1 is private (10.0.0.0/8); the operator can admit it with \"10.0.0.1:8080\" in the egress allow-list (executor.allow, or --allow of kubezap dev)",
        ),
        (
            "http://user:pw@[::1]/?token=hidden",
            "[::1] is loopback (::1/128); the operator can admit it with \"[::1]:80\" in the egress allow-list (executor.allow, or --allow of kubezap dev)",
        ),
        (
            "http://orders:9000/",
            "orders is a single label, which only a search domain completes; the operator can admit it with \"orders:9000\" in the egress allow-list (executor.allow, or --allow of kubezap dev)",
        ),
        (
            "ftp://8.8.8.8/",
            "ftp is not a scheme that is called; use http or https",
        ),
    ] {
        assert_eq!(check(url, &[]).unwrap_err().to_string(), text, "{url}");
    }
    assert_eq!(
        answers("https://db.example.com/", &["169.254.169.254"], &[])
            .unwrap_err()
            .to_string(),
        "db.example.com resolves to 169.254.169.254, which is a cloud metadata address; the operator can admit it with \"169.254.169.254:443\" in the egress allow-list (executor.allow, or --allow of kubezap dev)"
    );
}

#[test]
fn what_a_refusal_advises_is_admitted_when_it_is_followed() {
    for (url, found) in [
        ("http://127.0.0.1:8080/", None),
        ("http://[::1]:8080/", None),
        ("http://[::ffff:10.0.0.1]/", None),
        ("http://[64:ff9b::a00:1]/", None),
        ("http://localhost:3000/", Some("127.0.0.1")),
        ("http://orders/", Some("10.0.0.1")),
        ("https://orders.shop.svc:8443/", Some("10.0.0.1")),
        ("https://db.example.com/", Some("192.168.0.1")),
        ("https://db.example.com:5000/", Some("169.254.169.254")),
        ("https://db.example.com/", Some("::1")),
    ] {
        let mut allow: Vec<String> = Vec::new();
        let url = Url::parse(url).unwrap();
        let target = Target::of(&url).unwrap();
        let found: Vec<IpAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let guard = Guard::default();
        // A name may need two entries: one for itself, one for what it resolves to.
        for _ in 0..3 {
            let list = AllowList::parse(&allow).unwrap();
            let verdict = guard
                .check_url(&url, &list)
                .and_then(|()| guard.check_answers(&target, &found, &list).map(drop));
            let Err(denied) = verdict else { break };
            let (Reason::Name { entry, .. } | Reason::Address { entry, .. }) = denied.reason else {
                panic!("{url}: {denied}")
            };
            allow.push(entry);
        }
        let list = AllowList::parse(&allow).unwrap();
        assert_eq!(guard.check_url(&url, &list), Ok(()), "{url} {allow:?}");
        assert!(
            guard.check_answers(&target, &found, &list).is_ok(),
            "{url} {allow:?}"
        );
        assert!(!allow.is_empty() && allow.len() <= 2, "{url} {allow:?}");
    }
}

#[test]
fn a_name_entry_admits_its_name_on_its_port() {
    let private = &["10.1.2.3"];
    for (allow, url, admitted) in [
        ("orders.shop.svc", "http://orders.shop.svc/", true),
        ("orders.shop.svc", "https://orders.shop.svc/", true),
        ("orders.shop.svc", "http://orders.shop.svc:8080/", false),
        ("orders.shop.svc:8080", "http://orders.shop.svc:8080/", true),
        ("orders.shop.svc:8080", "http://orders.shop.svc/", false),
        ("orders.shop.svc:*", "http://orders.shop.svc:1/", true),
        ("ORDERS.shop.svc.", "http://orders.SHOP.svc./", true),
        ("*.shop.svc", "http://orders.shop.svc/", true),
        ("*.shop.svc", "http://a.b.shop.svc/", true),
        ("*.shop.svc", "http://shop.svc/", false),
        ("*.shop.svc", "http://evilshop.svc/", false),
        ("*.shop.svc:443", "http://orders.shop.svc/", false),
        ("*.shop.svc:443", "https://orders.shop.svc/", true),
        ("bücher.internal", "http://xn--bcher-kva.internal/", true),
        // A network admits addresses, not names.
        ("10.0.0.0/8", "http://orders.shop.svc/", false),
    ] {
        let verdict = check(url, &[allow]).and_then(|()| answers(url, private, &[allow]).map(drop));
        assert_eq!(verdict.is_ok(), admitted, "{allow} {url}: {verdict:?}");
    }
}

#[test]
fn a_network_entry_admits_addresses_on_its_port_or_on_any() {
    for (allow, url, admitted) in [
        ("10.0.0.0/8", "http://10.1.2.3:9999/", true),
        ("10.0.0.0/8:443", "https://10.1.2.3/", true),
        ("10.0.0.0/8:443", "http://10.1.2.3/", false),
        ("10.0.0.0/8:*", "http://10.1.2.3:1/", true),
        ("10.0.0.0/8", "http://172.16.0.1/", false),
        ("10.0.0.0/8", "http://[::ffff:10.1.2.3]/", true),
        ("10.0.0.0/8", "http://0x0a010203/", true),
        ("fd00::/8", "http://[fd12::1]:8080/", true),
        ("[fd00::/8]:443", "https://[fd12::1]/", true),
        ("fd00::/8:443", "http://[fd12::1]/", false),
        ("127.0.0.1", "http://127.0.0.1:8000/", true),
        ("127.0.0.1:8000", "http://127.0.0.1:8000/", true),
        ("127.0.0.1:8000", "http://127.0.0.1:8001/", false),
        ("127.0.0.1/32", "http://2130706433:8000/", true),
        ("127.0.0.1", "http://127.0.0.2/", false),
        ("::1", "http://[::1]:8000/", true),
        ("[::1]:8000", "http://[::1]:8000/", true),
        ("[::1]:8000", "http://127.0.0.1:8000/", false),
    ] {
        let verdict = check(url, &[allow]);
        assert_eq!(verdict.is_ok(), admitted, "{allow} {url}: {verdict:?}");
    }
}

#[test]
fn loopback_link_local_and_metadata_are_admitted_one_by_one_only() {
    for (allow, url, found, admitted) in [
        (&["0.0.0.0/0", "::/0"][..], "http://127.0.0.1/", None, false),
        (&["0.0.0.0/0", "::/0"], "http://[::1]/", None, false),
        (
            &["0.0.0.0/0", "::/0"],
            "http://169.254.169.254/",
            None,
            false,
        ),
        (
            &["0.0.0.0/0", "::/0"],
            "http://[64:ff9b::a9fe:a9fe]/",
            None,
            false,
        ),
        (&["0.0.0.0/0", "::/0"], "http://[fe80::1]/", None, false),
        (&["0.0.0.0/0", "::/0"], "http://0.0.0.0/", None, false),
        (&["0.0.0.0/0"], "http://10.0.0.1/", None, true),
        (&["127.0.0.0/8"], "http://127.0.0.1/", None, false),
        (&["127.0.0.0/31"], "http://127.0.0.1/", None, false),
        (&["100.64.0.0/10"], "http://100.100.100.200/", None, false),
        (&["100.64.0.0/10"], "http://100.100.100.201/", None, true),
        (&["fd00::/8"], "http://[fd00:ec2::254]/", None, false),
        (&["169.254.169.254"], "http://169.254.169.254/", None, true),
        (
            &["169.254.169.254"],
            "http://[::ffff:a9fe:a9fe]/",
            None,
            true,
        ),
        // A name that is admitted does not take them along.
        (
            &["db.example.com"],
            "http://db.example.com/",
            Some("127.0.0.1"),
            false,
        ),
        (
            &["db.example.com"],
            "http://db.example.com/",
            Some("169.254.169.254"),
            false,
        ),
        (
            &["db.example.com"],
            "http://db.example.com/",
            Some("10.0.0.1"),
            true,
        ),
        (
            &["db.example.com", "127.0.0.1"],
            "http://db.example.com/",
            Some("127.0.0.1"),
            true,
        ),
        (
            &["*.internal"],
            "http://metadata.google.internal/",
            Some("169.254.169.254"),
            false,
        ),
        // The name of loopback is its name.
        (&["localhost"], "http://localhost/", Some("127.0.0.1"), true),
        (&["localhost"], "http://localhost/", Some("::1"), true),
        (
            &["localhost"],
            "http://localhost/",
            Some("169.254.169.254"),
            false,
        ),
        (
            &["*.localhost"],
            "http://a.localhost/",
            Some("127.0.0.1"),
            false,
        ),
    ] {
        let verdict = check(url, allow).and_then(|()| match found {
            Some(found) => answers(url, &[found], allow).map(drop),
            None => Ok(()),
        });
        assert_eq!(verdict.is_ok(), admitted, "{allow:?} {url}: {verdict:?}");
    }
}

#[test]
fn what_the_operator_blocks_no_allow_list_admits() {
    let guard = Guard {
        blocked: vec![
            "8.8.0.0/16".parse().unwrap(),
            "10.9.0.0/16".parse().unwrap(),
        ],
        ..Guard::default()
    };
    let allow = AllowList::parse(&["8.8.8.8", "10.0.0.0/8"]).unwrap();
    for url in [
        "http://8.8.8.8/",
        "http://[::ffff:8.8.8.8]/",
        "http://[64:ff9b::808:808]/",
        "http://10.9.0.1/",
    ] {
        let denied = guard
            .check_url(&Url::parse(url).unwrap(), &allow)
            .unwrap_err();
        assert!(matches!(denied.reason, Reason::Blocked { .. }), "{url}");
        assert!(!denied.to_string().contains("resolves"), "{denied}");
    }
    let target = Target::of(&Url::parse("http://dns.example.com/").unwrap()).unwrap();
    let denied = guard
        .check_answers(&target, &["8.8.8.8".parse().unwrap()], &allow)
        .unwrap_err();
    assert_eq!(
        denied.to_string(),
        "dns.example.com resolves to 8.8.8.8, which is in 8.8.0.0/16, blocked by the operator (--blocked-cidrs)"
    );
    let ok = guard.check_url(&Url::parse("http://10.8.0.1/").unwrap(), &allow);
    assert_eq!(ok, Ok(()));
}

#[test]
fn an_operators_list_of_ports_holds_for_every_target_not_admitted_with_a_port() {
    let guard = Guard {
        ports: Some(vec![443]),
        ..Guard::default()
    };
    let allow =
        AllowList::parse(&["api.example.com:8443", "db.example.com", "10.0.0.0/8:*"]).unwrap();
    for (url, admitted) in [
        ("https://other.example.com/", true),
        ("http://other.example.com/", false),
        ("https://api.example.com:8443/", true),
        ("https://api.example.com:8444/", false),
        ("http://db.example.com/", false),
        ("http://10.0.0.1:1234/", true),
        ("http://8.8.8.8/", false),
    ] {
        let verdict = guard.check_url(&Url::parse(url).unwrap(), &allow);
        assert_eq!(verdict.is_ok(), admitted, "{url}: {verdict:?}");
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_refused_with_what_would_be_right() {
    for (entry, problem) in [
        ("", "is empty"),
        (
            "https://api.example.com",
            "is a URL; write the host alone, such as api.example.com:8443",
        ),
        (
            "api.example.com:0",
            "has port \"0\"; a port is 1 to 65535 or *",
        ),
        (
            "api.example.com:",
            "has port \"\"; a port is 1 to 65535 or *",
        ),
        (
            "api.example.com:+80",
            "has port \"+80\"; a port is 1 to 65535 or *",
        ),
        (
            "api.example.com:65536",
            "has port \"65536\"; a port is 1 to 65535 or *",
        ),
        (
            "10.0.0.1/8",
            "has bits set after its prefix; write 10.0.0.0/8 or an address alone",
        ),
        (
            "10.0.0.0/33",
            "is not a network; write an address, / and a prefix length",
        ),
        (
            "api.example.com/path",
            "is not a network; write an address, / and a prefix length",
        ),
        ("2130706433", "is an odd spelling; write 127.0.0.1"),
        ("127.1", "is an odd spelling; write 127.0.0.1"),
        ("*.127.0.0.1", "has a wildcard before an address"),
        ("*", "has a * that is not a leading \"*.\""),
        ("api.*.com", "has a * that is not a leading \"*.\""),
        ("*.*.com", "has a * that is not a leading \"*.\""),
        ("*.", "is not a host name"),
        ("a..b", "has an empty label"),
        ("user@host", "is not a host name"),
        ("a b", "is not a host name"),
        ("[::1", "has [ without ]"),
        ("[::1]80", "has text between ] and the port"),
        ("[a.b]:80", "has brackets around something that is not IPv6"),
        ("::1:zz:1", "is not an IPv6 address"),
    ] {
        let error = AllowList::parse(&["8.8.8.8", entry]).unwrap_err();
        assert_eq!(error.problem, problem, "{entry}");
        assert_eq!(error.entry, entry);
    }
}

/// Every way the URL standard reads an IPv4 address in.
fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let bits = address.to_bits();
    let hex = |n: u8| format!("0x{n:x}");
    let octal = |n: u8| format!("0{n:o}");
    vec![
        address.to_string(),
        format!("{address}."),
        bits.to_string(),
        format!("0x{bits:x}"),
        format!("0{bits:o}"),
        format!("{}.{}.{}.{}", hex(a), hex(b), hex(c), hex(d)),
        format!("{}.{}.{}.{}", octal(a), octal(b), octal(c), octal(d)),
        format!("{a}.{}", bits & 0xff_ffff),
        format!("{a}.{b}.{}", bits & 0xffff),
        format!("{}.{b}.0x{:x}", octal(a), bits & 0xffff),
        format!("user:pass@{address}"),
        format!("[::ffff:{address}]"),
        format!("[::ffff:{:x}:{:x}]", bits >> 16, bits & 0xffff),
        format!("[64:ff9b::{address}]"),
        address
            .to_string()
            .chars()
            .map(|c| match c {
                '0'..='9' => char::from_u32(u32::from(c) - 0x30 + 0xff10).unwrap(),
                _ => '。',
            })
            .collect(),
        address
            .to_string()
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect(),
    ]
}

fn refused_v4() -> impl Strategy<Value = Ipv4Addr> {
    (
        prop::sample::select(vec![
            (0u32, 8u32),
            (10 << 24, 8),
            (0x6440_0000, 10),
            (127 << 24, 8),
            (0xa9fe_0000, 16),
            (0xac10_0000, 12),
            (0xc0a8_0000, 16),
            (0xc612_0000, 15),
            (0xe000_0000, 4),
            (0xf000_0000, 4),
        ]),
        any::<u32>(),
    )
        .prop_map(|((network, prefix), host)| {
            Ipv4Addr::from_bits(network | (host & (u32::MAX >> prefix)))
        })
}

proptest! {
    #[test]
    fn no_spelling_of_a_refused_address_passes(address in refused_v4(), port in 1u16..) {
        for host in spellings(address) {
            let url = Url::parse(&format!("http://{host}:{port}/")).unwrap();
            let verdict = Guard::default().check_url(&url, &AllowList::default());
            prop_assert!(verdict.is_err(), "{host} passed as {url}");
        }
    }

    #[test]
    fn a_spelling_never_changes_the_verdict_on_an_address(bits in any::<u32>()) {
        let address = Ipv4Addr::from_bits(bits);
        let expected = Guard::default().check_address(address.into()).is_ok();
        for host in spellings(address) {
            let url = Url::parse(&format!("https://{host}/")).unwrap();
            let verdict = Guard::default().check_url(&url, &AllowList::default());
            prop_assert_eq!(verdict.is_ok(), expected, "{}", host);
        }
    }

    #[test]
    fn whatever_wraps_a_refused_ipv4_address_is_refused(address in refused_v4(), rest in any::<u64>()) {
        let bits = u128::from(address.to_bits());
        let rest = u128::from(rest);
        for wrapped in [
            bits,
            0xffff << 32 | bits,
            0xffff << 48 | bits,
            0x0064_ff9b << 96 | bits,
            0x0064_ff9b_0001 << 80 | (rest & 0xffff_ffff) << 32 | bits,
            0x2002 << 112 | bits << 80 | rest,
            0x2001_0000 << 96 | rest << 32 | (!bits & 0xffff_ffff),
            0x2001_0000 << 96 | bits << 64 | rest,
        ] {
            let wrapped = Ipv6Addr::from_bits(wrapped);
            prop_assert!(Guard::default().check_address(wrapped.into()).is_err(), "{}", wrapped);
        }
    }

    #[test]
    fn outside_of_2000_3_and_nat64_no_ipv6_address_passes(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        let [first, second, ..] = address.segments();
        let allocated = first >> 13 == 1 || (first, second) == (0x64, 0xff9b) || address.to_ipv4_mapped().is_some();
        prop_assume!(!allocated);
        prop_assert!(address::refused(address.into()).is_some(), "{}", address);
    }

    #[test]
    fn parsing_an_allow_list_never_panics_and_never_admits_metadata_by_accident(entry in "[a-z0-9*.:/\\[\\]@ -]{0,24}") {
        if let Ok(list) = AllowList::parse(&[&entry]) {
            let url = Url::parse("http://169.254.169.254/").unwrap();
            let verdict = Guard::default().check_url(&url, &list);
            prop_assert!(verdict.is_err(), "{entry:?} admits it");
        }
    }

    #[test]
    fn judging_a_url_never_panics(text in "(http|https|ftp)://[ -~]{0,40}") {
        if let Ok(url) = Url::parse(&text) {
            let _ = Guard::default().check_url(&url, &AllowList::default());
        }
    }
}
