use bytes::{Bytes, BytesMut};

/// The bytes of one message, in the pieces in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    pieces: Vec<Bytes>,
    len: usize,
}

impl Pieces {
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        self.pieces.push(piece);
    }

    /// The length of the message in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The pieces, one after the other.
    pub(crate) fn into_pieces(self) -> Vec<Bytes> {
        self.pieces
    }

    pub(crate) fn as_slice(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The message in one piece, without copying it if it came in one.
    pub(crate) fn into_bytes(mut self) -> Bytes {
        if let [piece] = &mut *self.pieces {
            return std::mem::take(piece);
        }
        let mut whole = BytesMut::with_capacity(self.len);
        for piece in self.pieces {
            whole.extend_from_slice(&piece);
        }
        whole.freeze()
    }
}

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        Self {
            len: bytes.len(),
            pieces: vec![bytes],
        }
    }
}
