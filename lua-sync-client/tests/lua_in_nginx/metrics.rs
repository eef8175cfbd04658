//! The figures of requests that are sent to the controller.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    os::unix::{fs::PermissionsExt, net::UnixListener},
    thread,
};

use crate::support::{
    eventually,
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

#[test]
fn every_request_is_in_one_of_the_reports() {
    let nginx = Nginx::start_with(Setup {
        metrics: true,
        ..Setup::default()
    });
    let listener = listen(&nginx);
    nginx.post_backends(&[
        backend("a", &[Upstream::start("up")]),
        backend("retried", &[Upstream::closed()]),
    ]);
    for _ in 0..5 {
        nginx.get_with("a", &[("Host", "Shop.test")]);
    }
    nginx.get("unknown");
    nginx.get("retried");

    let mut records: Vec<Vec<String>> = Vec::new();
    while records.len() < 7 {
        let (dropped, batch) = report(&listener);
        assert_eq!((dropped, batch.is_empty()), (0, false));
        records.extend(batch);
    }
    assert_eq!(records.len(), 7);

    let (texts, numbers) = records[0].split_at(7);
    let (path, numbers) = numbers.split_last().unwrap();
    assert_eq!(
        texts,
        ["shop.test", "shop", "front", "web", "", "GET", "200"]
    );
    assert_eq!(path, "/");
    assert_eq!(numbers.len(), 6);
    for number in numbers {
        let number: f64 = number.parse().unwrap();
        assert!(number >= 0.0, "{:?}", records[0]);
    }
    // Nothing was measured, or more than one value.
    assert_eq!((&*records[5][6], &*records[5][10]), ("503", ""));
    assert_eq!(records[6][6], "502");
    assert!(records[6][12].parse::<f64>().is_err(), "{:?}", records[6]);
}

#[test]
fn what_is_too_much_is_counted() {
    let nginx = Nginx::start_with(Setup {
        metrics: true,
        ..Setup::default()
    });
    nginx.post_backends(&[backend("a", &[Upstream::start("up")])]);
    // Nobody listens: what could not be sent is not kept, only counted.
    nginx.get("a");
    nginx.get("a");
    // Both in one report, or each in one if there was a second in between.
    eventually("reports that nobody takes", || {
        let log = nginx.log();
        let reports = log.split("sending the metrics of ").skip(1);
        let counts = reports.filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok());
        (counts.sum::<usize>() == 2).then_some(())
    });
    let listener = listen(&nginx);
    nginx.get("a");
    let (dropped, records) = report(&listener);
    assert_eq!((dropped, records.len()), (2, 1));
}

/// The socket that the controller would listen on.
fn listen(nginx: &Nginx) -> UnixListener {
    let path = nginx.directory().join("metrics.sock");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    listener
}

/// The next report: how many requests it lacks, and the parts of each.
fn report(listener: &UnixListener) -> (u64, Vec<Vec<String>>) {
    let mut text = String::new();
    let mut stream = listener.accept().unwrap().0;
    stream.read_to_string(&mut text).unwrap();
    let (records, dropped) = text.rsplit_once("\ndropped ").unwrap();
    let dropped = dropped.strip_suffix('\n').unwrap();
    let records = records.lines();
    let records = records.map(|line| line.split('\t').map(str::to_owned).collect());
    (dropped.parse().unwrap(), records.collect())
}

#[test]
fn long_names_of_hosts_make_no_report_too_long() {
    const CONNECTIONS: usize = 4;
    const REQUESTS: usize = 700;
    let nginx = Nginx::start_with(Setup {
        metrics: true,
        ..Setup::default()
    });
    let listener = listen(&nginx);
    nginx.post_backends(&[]);
    let host = "h".repeat(8000);
    let request = format!("GET / HTTP/1.1\r\nX-Backend: none\r\nHost: {host}\r\n\r\n");
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, nginx.http)).unwrap();
            let mut sender = stream.try_clone().unwrap();
            let request = &request;
            scope.spawn(move || {
                for _ in 0..REQUESTS {
                    sender.write_all(request.as_bytes()).unwrap();
                }
            });
            scope.spawn(move || {
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                let answers = lines.filter(|line| line.starts_with("HTTP/1.1 "));
                assert_eq!(answers.take(REQUESTS).count(), REQUESTS);
            });
        }
        // They are taken as they come: a worker gives up on one that nobody reads.
        let (mut kept, mut lost) = (0, 0);
        while kept + lost < CONNECTIONS * REQUESTS {
            let (dropped, records) = report(&listener);
            let length = records.iter().flatten().map(String::len).sum::<usize>();
            assert!(length < (16 << 20) + 10_000, "{length} bytes");
            kept += records.len();
            lost += usize::try_from(dropped).unwrap();
        }
        assert_eq!(kept + lost, CONNECTIONS * REQUESTS);
    });
}

#[test]
fn nothing_is_sent_when_metrics_are_off() {
    let nginx = Nginx::start();
    let listener = listen(&nginx);
    nginx.post_backends(&[backend("a", &[Upstream::start("up")])]);
    nginx.get("a");
    // Workers that end flush what they have.
    drop(nginx);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}
