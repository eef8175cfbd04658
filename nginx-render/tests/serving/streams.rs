//! What is no HTTP.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use ingress_model::{Layout, layout::StreamServer, live::UpstreamName};

use crate::{
    BACKEND,
    nginx::{Nginx, free_ports},
    support::layout,
};

#[test]
fn streams_read_their_endpoints_from_files() {
    let [plain, with_header] = free_ports();
    let server = |proxy_protocol_out| StreamServer {
        upstream: UpstreamName::new("tcp-shop-db-5432"),
        proxy_protocol_in: false,
        proxy_protocol_out,
    };
    let layout = Layout {
        tcp: [(plain, server(false)), (with_header, server(true))].into(),
        ..layout([])
    };
    let nginx = Nginx::start(&layout, BACKEND);
    let endpoints = nginx.directory.path().join("stream");
    std::fs::create_dir_all(&endpoints).unwrap();
    let request = "GET /raw HTTP/1.1\r\nConnection: close\r\n\r\n";
    let ask = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut first = [0; 1];
        stream.read(&mut first).unwrap_or(0)
    };
    assert_eq!(ask(plain), 0, "nobody serves a port without endpoints");
    for port in [plain, with_header] {
        let address = format!("127.0.0.1:{}\n", nginx.endpoint.port);
        std::fs::write(endpoints.join(format!("tcp-{port}")), address).unwrap();
    }
    assert_eq!(ask(plain), 1, "{}", nginx.log());
    assert!(nginx.endpoint.wait_for("/raw").starts_with("GET /raw "));
    assert_eq!(ask(with_header), 1, "{}", nginx.log());
    assert!(
        nginx
            .endpoint
            .wait_for("PROXY TCP4 127.0.0.1")
            .contains("GET /raw ")
    );
}
