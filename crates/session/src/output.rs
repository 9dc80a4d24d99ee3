//! Where a changeset is written to: memory, or somebody who takes it in pieces.

use iolite_base::Result;

/// Takes the next bytes.
pub type Sink<'a> = Box<dyn FnMut(&[u8]) -> Result<()> + 'a>;

/// Bytes that are being written.
#[derive(Default)]
pub struct Output<'a> {
    pub(crate) bytes: Vec<u8>,
    sink: Option<(usize, Sink<'a>)>,
}

impl<'a> Output<'a> {
    /// Hands all over to `sink`, in pieces of about `size`.
    pub fn pieces(size: usize, sink: Sink<'a>) -> Output<'a> {
        Output { bytes: Vec::new(), sink: Some((size, sink)) }
    }

    /// A change has been written: hands it over if enough has come together.
    pub(crate) fn written(&mut self) -> Result<()> {
        match &mut self.sink {
            Some((size, sink)) if self.bytes.len() > *size => {
                sink(&self.bytes)?;
                self.bytes.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// The end: what was written, or nothing, for it has been handed over.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        if let Some((_, sink)) = &mut self.sink {
            if !self.bytes.is_empty() {
                sink(&self.bytes)?;
            }
            self.bytes = Vec::new();
        }
        Ok(self.bytes)
    }
}
