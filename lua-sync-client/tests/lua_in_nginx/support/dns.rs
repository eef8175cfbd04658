//! A name server for a handful of names, whose answers a test can change.

use std::{
    collections::BTreeMap,
    net::{IpAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;
const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;

#[derive(Debug)]
struct Zone {
    /// Name → addresses and TTL in seconds.
    records: BTreeMap<String, (Vec<IpAddr>, u8)>,
    failing: bool,
}

/// A server that lives as long as the test process.
#[derive(Debug)]
pub(crate) struct NameServer {
    port: u16,
    zone: Arc<Mutex<Zone>>,
    questions: Arc<AtomicUsize>,
}

impl NameServer {
    /// Starts a server on a free UDP port that knows no name yet.
    pub(crate) fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binding the name server");
        let server = Self {
            port: socket.local_addr().unwrap().port(),
            zone: Arc::new(Mutex::new(Zone {
                records: BTreeMap::new(),
                failing: false,
            })),
            questions: Arc::default(),
        };
        let (zone, questions) = (Arc::clone(&server.zone), Arc::clone(&server.questions));
        thread::spawn(move || {
            let mut packet = [0; 512];
            loop {
                let (length, peer) = socket.recv_from(&mut packet).unwrap();
                questions.fetch_add(1, Ordering::SeqCst);
                let reply = answer(&zone.lock().unwrap(), &packet[..length]);
                socket.send_to(&reply, peer).unwrap();
            }
        });
        server
    }

    /// Lets `name` (without final dot) have one address.
    pub(crate) fn set(&self, name: &str, address: impl Into<IpAddr>, ttl: u8) {
        self.set_all(name, &[address.into()], ttl);
    }

    /// Lets `name` have these addresses, given out in this order.
    pub(crate) fn set_all(&self, name: &str, addresses: &[IpAddr], ttl: u8) {
        let record = (addresses.to_vec(), ttl);
        let mut zone = self.zone.lock().unwrap();
        zone.records.insert(name.to_owned(), record);
    }

    /// Whether every question is answered with a server failure.
    pub(crate) fn fail(&self, failing: bool) {
        self.zone.lock().unwrap().failing = failing;
    }

    /// How many questions have come.
    pub(crate) fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }

    /// A resolv.conf that names this server.
    pub(crate) fn resolv_conf(&self, rest: &str) -> String {
        format!("nameserver [127.0.0.1]:{}\n{rest}\n", self.port)
    }
}

/// The reply to a packet with one question.
fn answer(zone: &Zone, packet: &[u8]) -> Vec<u8> {
    let mut labels = Vec::new();
    let mut position = 12;
    while packet[position] != 0 {
        let end = position + 1 + usize::from(packet[position]);
        labels.push(String::from_utf8_lossy(&packet[position + 1..end]).into_owned());
        position = end;
    }
    let question = &packet[12..position + 5];
    let asked = u16::from_be_bytes([packet[position + 1], packet[position + 2]]);
    let record = zone.records.get(&labels.join("."));
    let code = match record {
        _ if zone.failing => SERVER_FAILURE,
        Some(_) => 0,
        None => NO_SUCH_NAME,
    };
    let found: Vec<Vec<u8>> = record
        .filter(|_| !zone.failing)
        .into_iter()
        .flat_map(|(addresses, ttl)| {
            addresses
                .iter()
                .filter_map(move |address| resource(asked, *address, *ttl))
        })
        .collect();
    let mut reply = packet[..2].to_vec();
    reply.extend([
        0x81,
        0x80 | code,
        0,
        1,
        0,
        u8::try_from(found.len()).unwrap(),
        0,
        0,
        0,
        0,
    ]);
    reply.extend(question);
    reply.extend(found.concat());
    reply
}

/// The record of an address, if it is of the type that was asked for.
fn resource(asked: u16, address: IpAddr, ttl: u8) -> Option<Vec<u8>> {
    let (kind, octets) = match address {
        IpAddr::V4(address) => (TYPE_A, address.octets().to_vec()),
        IpAddr::V6(address) => (TYPE_AAAA, address.octets().to_vec()),
    };
    let [high, low] = kind.to_be_bytes();
    let length = u8::try_from(octets.len()).unwrap();
    let head = [0xc0, 12, high, low, 0, 1, 0, 0, 0, ttl, 0, length];
    (kind == asked).then(|| [head.to_vec(), octets].concat())
}
