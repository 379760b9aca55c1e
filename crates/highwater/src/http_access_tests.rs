use std::path::Path;

use highwater_access::{Hash, Password, Role, Token, User, UsersFile, Verifier};

use super::*;

const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

async fn admit(http: &HttpAccess, request: &Request<Body>) -> Result<(), Denial> {
    http.admit(Asking::of(request)).await.map(drop)
}

struct Bench {
    http: HttpAccess,
    /// The token of `ops`.
    token: String,
    _folder: tempfile::TempDir,
}

fn put(path: &Path, name: &str, role: Option<Role>, tokens: Vec<Token>) {
    let password = Password::new(format!("s3cret of {name}").as_bytes());
    let verifiers = vec![Verifier::new(Hash::Sha256, &password)];
    let user = User { name: name.to_owned(), role, grants: Vec::new(), verifiers, tokens };
    let put = |users: &mut highwater_access::Users| {
        users.put(user);
        Ok(())
    };
    UsersFile::new(path).change(put).unwrap();
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let (token, new) = Token::mint("ci").unwrap();
    put(&path, "ann", Some(Role::View), Vec::new());
    put(&path, "srv", None, Vec::new());
    put(&path, "ops", Some(Role::Operate), vec![token]);
    let access = Access::of_users(UsersFile::new(&path)).unwrap();
    let subjects = SubjectRules::parse("RULE:CN=([a-z]+)/$1/").unwrap();
    let servers = vec!["srv".to_owned(), "gone".to_owned()];
    let http = HttpAccess::new(Arc::new(access), subjects, servers);
    Bench { http, token: new.reveal().to_owned(), _folder: folder }
}

fn request(method: Method, path: &str, header: Option<&str>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(ADDRESS));
    if let Some(header) = header {
        request.headers_mut().insert(header::AUTHORIZATION, header.parse().unwrap());
    }
    request
}

/// `Basic` of a name and a password. (`base64` of them, by hand: three bytes are four letters.)
fn basic(pair: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "Basic ".to_owned();
    for part in pair.as_bytes().chunks(3) {
        let bits = part
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= part.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[tokio::test]
async fn a_password_a_token_and_a_certificate_let_in_and_the_role_decides() {
    let Bench { http, token, _folder } = bench();
    let (ann, ops) = (basic("ann:s3cret of ann"), format!("Bearer {token}"));
    let get = |header: Option<&str>| request(Method::GET, "/connectors", header);
    let pause = |header: Option<&str>| request(Method::PUT, "/connectors/c/pause", header);
    assert_eq!(admit(&http, &get(Some(&ann))).await, Ok(()));
    assert_eq!(admit(&http, &get(Some(&ops))).await, Ok(()));
    assert_eq!(admit(&http, &pause(Some(&ops))).await, Ok(()));
    let refused = admit(&http, &pause(Some(&ann))).await.unwrap_err();
    assert_eq!(
        refused,
        Denial::NotAllowed("User:ann may not do this: it takes alter on connector c".to_owned())
    );
    assert_eq!(refused.into_response().status(), StatusCode::FORBIDDEN);
    let certified = |subject: &str| {
        let mut request = pause(None);
        request.extensions_mut().insert(PeerSubject(subject.into()));
        request
    };
    assert_eq!(admit(&http, &certified("CN=ops")).await, Ok(()));
    assert_eq!(admit(&http, &certified("CN=nobody")).await, Err(Denial::Failed));
    assert_eq!(admit(&http, &certified("CN=ops,O=else")).await, Err(Denial::Failed));
    // What the request says counts, not who its connection is.
    let mut both = certified("CN=ops");
    both.headers_mut().insert(header::AUTHORIZATION, ann.parse().unwrap());
    assert!(matches!(admit(&http, &both).await, Err(Denial::NotAllowed(_))));
}

#[tokio::test]
async fn a_server_speaks_for_others_and_nobody_else_does() {
    let Bench { http, token, _folder } = bench();
    let bearer = format!("Bearer {token}");
    let asked = |subject: Option<&str>, behalf: &[&str], header: Option<&str>| {
        let mut request = request(Method::PUT, "/connectors/c/pause", header);
        if let Some(subject) = subject {
            request.extensions_mut().insert(PeerSubject(subject.into()));
        }
        for name in behalf {
            request.headers_mut().append(ON_BEHALF_OF, name.parse().unwrap());
        }
        request
    };
    let server = Some("CN=srv");
    assert_eq!(admit(&http, &asked(server, &["ops"], None)).await, Ok(()));
    assert_eq!(admit(&http, &asked(server, &["%6Fps"], None)).await, Ok(()), "escaped");
    let for_ann = admit(&http, &asked(server, &["ann"], None)).await;
    assert!(matches!(for_ann, Err(Denial::NotAllowed(what)) if what.contains("User:ann")));
    let by_itself = admit(&http, &asked(server, &[], None)).await;
    assert!(matches!(by_itself, Err(Denial::NotAllowed(what)) if what.contains("User:srv")));
    for behalf in [&["bob"][..], &[""], &["ann", "ops"], &["%ff"]] {
        let refused = admit(&http, &asked(server, behalf, None)).await;
        assert_eq!(refused, Err(Denial::Failed), "{behalf:?} is nobody");
    }
    for subject in [None, Some("CN=ops"), Some("CN=gone"), Some("CN=srv,O=else"), Some("CN=nobody")]
    {
        let refused = admit(&http, &asked(subject, &["ops"], None)).await;
        assert_eq!(refused, Err(Denial::MaySpeakForNobody), "{subject:?}");
    }
    for (subject, behalf) in [(server, "ann"), (None, "ops"), (Some("CN=ops"), "ops")] {
        let refused = admit(&http, &asked(subject, &[behalf], Some(&bearer))).await;
        assert_eq!(refused, Err(Denial::MaySpeakForNobody), "{subject:?} with a token");
    }
}

#[tokio::test]
async fn who_is_known_by_the_connection_alone_is_told_to_the_worker() {
    let Bench { http, token, _folder } = bench();
    let caller = async |request: &Request<Body>| http.admit(Asking::of(request)).await.unwrap();
    let bearer = format!("Bearer {token}");
    let mut certified = request(Method::PUT, "/connectors/c/pause", None);
    certified.extensions_mut().insert(PeerSubject("CN=ops".into()));
    assert_eq!(caller(&certified).await, Some(Caller("ops".to_owned())));
    certified.headers_mut().insert(header::AUTHORIZATION, bearer.parse().unwrap());
    assert_eq!(caller(&certified).await, None, "the header is passed on");
    let mut spoken_for = request(Method::PUT, "/connectors/c/pause", None);
    spoken_for.extensions_mut().insert(PeerSubject("CN=srv".into()));
    spoken_for.headers_mut().insert(ON_BEHALF_OF, "ops".parse().unwrap());
    assert_eq!(caller(&spoken_for).await, Some(Caller("ops".to_owned())), "and to the next one");
}

#[tokio::test]
async fn who_says_nothing_or_something_wrong_is_asked_and_told_no_more() {
    let Bench { http, token, _folder } = bench();
    let said = async |header: Option<&str>| admit(&http, &request(Method::GET, "/", header)).await;
    assert_eq!(said(None).await, Err(Denial::NoLogin));
    let asked = Denial::NoLogin.into_response();
    assert_eq!(asked.headers().get_all(header::WWW_AUTHENTICATE).iter().count(), 2);
    for wrong in [
        basic("ann:s3cret of ops"),
        basic("bob:s3cret of ann"),
        basic("ann:"),
        "Basic".to_owned(),
        "Bearer hwt_nothing".to_owned(),
        format!("Bearer {}", &token[..token.len() - 1]),
        format!("Basic {token}"),
        "Negotiate abc".to_owned(),
    ] {
        let refused = said(Some(&wrong)).await.unwrap_err();
        assert_eq!(refused, Denial::Failed, "{wrong}");
        let body = refused.into_response().into_body();
        let body = axum::body::to_bytes(body, 1 << 16).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(!body.contains("s3cret") && !body.contains(&token), "{body}");
    }
    let mut twice = request(Method::GET, "/", Some(&basic("ann:s3cret of ann")));
    twice.headers_mut().append(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    assert_eq!(admit(&http, &twice).await, Err(Denial::Failed), "of two headers none counts");
    let ready = request(Method::GET, "/highwater/v1/health/ready", None);
    assert_eq!(admit(&http, &ready).await, Ok(()), "a probe has no login");
}

#[tokio::test(start_paused = true)]
async fn guessing_is_slow_and_ends_in_being_turned_away() {
    let Bench { http, token, _folder } = bench();
    let guess = async |header: &str| admit(&http, &request(Method::GET, "/", Some(header))).await;
    let begun = tokio::time::Instant::now();
    let mut tried = 0;
    let turned_away = loop {
        match guess("Bearer hwt_wrong").await.unwrap_err() {
            Denial::Failed => tried += 1,
            denial => break denial,
        }
    };
    // One more is let pass each second.
    assert!((20..30).contains(&tried), "{tried}");
    assert!(begun.elapsed() >= FAILURE_DELAY * tried, "{:?}", begun.elapsed());
    assert_eq!(turned_away, Denial::Throttled);
    assert!(turned_away.into_response().headers().contains_key(header::RETRY_AFTER));
    // Not even the right one is looked at then.
    assert_eq!(guess(&format!("Bearer {token}")).await, Err(Denial::Throttled));
    let mut other = request(Method::GET, "/", Some(&format!("Bearer {token}")));
    other.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 1], 1))));
    assert_eq!(admit(&http, &other).await, Ok(()), "another address is let in");
}

#[tokio::test]
async fn many_guesses_at_once_are_counted_one_by_one() {
    let Bench { http, .. } = bench();
    let guesses = (0..60).map(|_| {
        let request = request(Method::GET, "/", Some("Bearer hwt_wrong"));
        let http = &http;
        async move { admit(http, &request).await.unwrap_err() }
    });
    let denials = futures_util::future::join_all(guesses).await;
    let tried = denials.iter().filter(|denial| **denial == Denial::Failed).count();
    assert!(tried <= 22, "{tried} were looked at");
}

#[tokio::test]
async fn where_nobody_logs_in_all_are_let_in() {
    let http = HttpAccess::new(Arc::new(Access::open()), SubjectRules::default(), Vec::new());
    for (method, path) in [(Method::DELETE, "/connectors/c"), (Method::PUT, "/nothing")] {
        assert_eq!(admit(&http, &request(method, path, None)).await, Ok(()), "{path}");
    }
}
