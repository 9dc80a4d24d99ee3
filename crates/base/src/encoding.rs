/// The text encoding of a database (file format, header offset 56) or of one piece of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
#[repr(u8)]
pub enum Encoding {
    /// UTF-8, header value 1.
    #[default]
    Utf8 = 1,
    /// UTF-16, little-endian, header value 2.
    Utf16le = 2,
    /// UTF-16, big-endian, header value 3.
    Utf16be = 3,
}

impl Encoding {
    /// The encoding with the given header value; `None` for anything but 1, 2 and 3.
    pub fn from_header(n: u32) -> Option<Encoding> {
        match n {
            1 => Some(Encoding::Utf8),
            2 => Some(Encoding::Utf16le),
            3 => Some(Encoding::Utf16be),
            _ => None,
        }
    }

    /// The name as `PRAGMA encoding` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16le => "UTF-16le",
            Encoding::Utf16be => "UTF-16be",
        }
    }
}
