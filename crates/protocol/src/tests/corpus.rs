//! Seeds of the fuzz entries: `HIGHWATER_WRITE_CORPUS=1 cargo test -p highwater-protocol corpus`.

use std::path::PathBuf;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Sample, Visitor, sampled};
use crate::api::every_message;
use crate::records::{BatchBuilder, Compression};
use crate::{Message, RequestHeader};

struct Write {
    response: bool,
}

fn write(entry: &str, name: &str, bytes: &[u8]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/fuzz/corpus");
    std::fs::create_dir_all(folder.join(entry)).unwrap();
    std::fs::write(folder.join(entry).join(name), bytes).unwrap();
}

impl Visitor for Write {
    fn visit<M: Message + Sample + std::fmt::Debug + PartialEq>(&mut self) {
        let choices: Vec<u8> = (1..120_u8).map(|number| number.wrapping_mul(57)).collect();
        let last = *M::VERSIONS.end();
        for version in [*M::VERSIONS.start(), M::FLEXIBLE_FROM.clamp(0, last), last] {
            if !M::VERSIONS.contains(&version) {
                continue;
            }
            let (_, body) = sampled::<M>(&choices, version);
            let mut bytes = BytesMut::new();
            if self.response {
                bytes.put_i16(M::KEY as i16);
                bytes.put_i16(version);
                let header = crate::ResponseHeader { correlation_id: 7 };
                header.encode(&mut bytes, M::KEY, version);
            } else {
                let client_id = Some("seed".to_owned());
                let (api_key, api_version, correlation_id) = (M::KEY, version, 7);
                RequestHeader { api_key, api_version, correlation_id, client_id }
                    .encode(&mut bytes);
            }
            bytes.extend_from_slice(&body);
            let entry = if self.response { "kafka-response" } else { "kafka-request" };
            write(entry, &format!("{:?}-{version}", M::KEY), &bytes);
        }
        // Each request is visited before its response.
        self.response = !self.response;
    }
}

#[test]
fn the_corpus_is_written_when_asked_for() {
    if std::env::var_os("HIGHWATER_WRITE_CORPUS").is_none() {
        return;
    }
    every_message(&mut Write { response: false });
    for codec in Compression::ALL {
        let mut batch = BatchBuilder::new(codec).base_offset(5).leader_epoch(1).producer(9, 0, 0);
        for number in 0..3_i64 {
            let value = [b'v'; 40];
            let header = (Bytes::from_static(b"hw"), Some(Bytes::from_static(b"{}")));
            let value = (number > 0).then_some(value.as_slice());
            batch.push(1_700_000_000_000 + number, Some(b"key"), value, &[header]);
        }
        write("record-batches", &format!("{codec:?}").to_lowercase(), &batch.build().unwrap());
        let packed = codec.compress(&[b"0123456789".repeat(20), vec![0; 300]].concat()).unwrap();
        let seed = [&[codec as u8][..], &packed].concat();
        write("compression", &format!("{codec:?}").to_lowercase(), &seed);
    }
}
