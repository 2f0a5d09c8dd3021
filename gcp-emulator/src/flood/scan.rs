//! Counting the fields of a message without decoding it.

/// Field numbers that are told apart: all that the served requests have.
const FIELDS: usize = 16;

/// Reads one gRPC message in pieces, as they come, and counts its top-level fields.
///
/// Nothing is copied and nothing is kept: payloads are skipped by their length.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    place: Place,
    /// Bytes of the frame's head that were read.
    head: usize,
    counts: [u64; FIELDS],
    /// The last value of each field that is a plain number.
    numbers: [u64; FIELDS],
}

/// Where in a message the scanner is.
#[derive(Debug, Default, Clone, Copy)]
enum Place {
    #[default]
    Tag,
    TagRest {
        value: u64,
        shift: u32,
    },
    Number {
        field: usize,
        value: u64,
        shift: u32,
    },
    Length {
        value: u64,
        shift: u32,
    },
    Skip {
        left: u64,
    },
}

/// The frame of a gRPC message: a flag and a length.
const HEAD: usize = 5;

impl Scanner {
    /// Takes the next piece.
    pub(super) fn feed(&mut self, mut piece: &[u8]) {
        let head = (HEAD - self.head).min(piece.len());
        self.head += head;
        piece = piece.get(head..).unwrap_or_default();
        while let Some((&byte, rest)) = piece.split_first() {
            match self.place {
                Place::Skip { left } => {
                    let there = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                    if left > there {
                        self.place = Place::Skip { left: left - there };
                        return;
                    }
                    let skipped = usize::try_from(left).unwrap_or(piece.len());
                    self.place = Place::Tag;
                    piece = piece.get(skipped..).unwrap_or_default();
                    continue;
                }
                Place::Tag => self.tag(byte, 0, 0),
                Place::TagRest { value, shift } => self.tag(byte, value, shift),
                Place::Number {
                    field,
                    value,
                    shift,
                } => {
                    let value = value | (u64::from(byte & 0x7f) << shift);
                    self.place = if byte & 0x80 != 0 && shift < 56 {
                        Place::Number {
                            field,
                            value,
                            shift: shift + 7,
                        }
                    } else {
                        if let Some(number) = self.numbers.get_mut(field) {
                            *number = value;
                        }
                        Place::Tag
                    };
                }
                Place::Length { value, shift } => {
                    let value = value | (u64::from(byte & 0x7f) << shift);
                    self.place = if byte & 0x80 != 0 && shift < 56 {
                        Place::Length {
                            value,
                            shift: shift + 7,
                        }
                    } else {
                        Place::Skip { left: value }
                    };
                }
            }
            piece = rest;
        }
        // A field of length nothing that ends the message needs no further byte.
        if let Place::Skip { left: 0 } = self.place {
            self.place = Place::Tag;
        }
    }

    fn tag(&mut self, byte: u8, value: u64, shift: u32) {
        let value = value | (u64::from(byte & 0x7f) << shift);
        if byte & 0x80 != 0 && shift < 56 {
            self.place = Place::TagRest {
                value,
                shift: shift + 7,
            };
            return;
        }
        let field = usize::try_from(value >> 3).unwrap_or(usize::MAX);
        if let Some(count) = self.counts.get_mut(field) {
            *count += 1;
        }
        self.place = match value & 7 {
            0 => Place::Number {
                field,
                value: 0,
                shift: 0,
            },
            1 => Place::Skip { left: 8 },
            5 => Place::Skip { left: 4 },
            _ => Place::Length { value: 0, shift: 0 },
        };
    }

    /// How often a field came.
    pub(super) fn count(&self, field: usize) -> u64 {
        self.counts.get(field).copied().unwrap_or(0)
    }

    /// The last value of a field that is a plain number; 0 when it did not come.
    pub(super) fn number(&self, field: usize) -> u64 {
        self.numbers.get(field).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
        AcknowledgeRequest, ModifyAckDeadlineRequest,
    };
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn framed(message: &impl Message) -> Vec<u8> {
        let body = message.encode_to_vec();
        let mut framed = vec![0];
        framed.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        framed.extend(body);
        framed
    }

    proptest! {
        #[test]
        fn ids_are_counted_however_the_bytes_are_cut(
            ids in prop::collection::vec("[a-z]{0,200}", 0..40),
            cuts in prop::collection::vec(1usize..50, 0..200),
        ) {
            let request = AcknowledgeRequest {
                subscription: "projects/demo-project/subscriptions/s".into(),
                ack_ids: ids.clone(),
            };
            let bytes = framed(&request);
            let mut scanner = Scanner::default();
            let mut rest = bytes.as_slice();
            for cut in cuts {
                let (piece, left) = rest.split_at(cut.min(rest.len()));
                scanner.feed(piece);
                rest = left;
            }
            scanner.feed(rest);
            prop_assert_eq!(scanner.count(2), ids.len() as u64);
            prop_assert_eq!(scanner.count(1), 1);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut scanner = Scanner::default();
            scanner.feed(&bytes);
            let fields: u64 = (0..FIELDS).map(|field| scanner.count(field)).sum();
            prop_assert!(fields <= 300);
        }
    }

    #[test]
    fn a_deadline_is_read() {
        let request = ModifyAckDeadlineRequest {
            subscription: "s".into(),
            ack_ids: vec!["a".into(), "b".into()],
            ack_deadline_seconds: 600,
        };
        let mut scanner = Scanner::default();
        scanner.feed(&framed(&request));
        assert_eq!((scanner.count(4), scanner.number(3)), (2, 600));
    }
}
