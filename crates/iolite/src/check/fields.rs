//! The fields of one record, found in one pass over its header.
//!
//! As many fields as somebody looks at; what lies behind them is nobody's.

use iolite_base::varint;
use iolite_value::record;

/// Where the fields of the record at hand begin, and what they are.
#[derive(Default)]
pub struct Fields {
    /// Serial type, and place in the record.
    list: Vec<(u64, usize)>,
}

impl Fields {
    /// Takes a record apart as far as its first `most` fields. `false`: they are not well formed.
    pub fn read(&mut self, rec: &[u8], most: usize) -> bool {
        self.list.clear();
        let Some((end, mut at)) = varint::get(rec) else { return false };
        if end > rec.len() as u64 {
            return false;
        }
        let end = end as usize;
        let mut place = end as u64;
        while self.list.len() < most && at < end {
            let serial = match rec[at] {
                byte @ ..0x80 => {
                    at += 1;
                    byte as u64
                }
                _ => {
                    let Some((serial, n)) = varint::get(&rec[at..]) else { return false };
                    at += n;
                    serial
                }
            };
            self.list.push((serial, place as usize));
            // A serial type is less than 2^64, and a record less than 2^32 bytes: the sum of few is compared before it overflows.
            place = place.saturating_add(record::serial_len(serial) as u64);
        }
        if at >= end { at == end && place == rec.len() as u64 } else { place <= rec.len() as u64 }
    }

    /// Serial type and bytes of a field; `None` where the record ends before it.
    #[inline]
    pub fn get<'r>(&self, rec: &'r [u8], k: usize) -> Option<(u64, &'r [u8])> {
        let &(serial, at) = self.list.get(k)?;
        Some((serial, &rec[at..at + record::serial_len(serial)]))
    }
}
