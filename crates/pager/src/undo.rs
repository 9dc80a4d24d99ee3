//! Savepoints: page images from before the changes that may be taken back alone.
//!
//! One flat log of images with a stack of levels over it. A level remembers where the log stood and how large
//! the database was when it was opened, and has a serial number; a page need be saved for a level only if it
//! existed then and its last save is older than the level.
//!
//! What always holds: serials grow up the stack; within the part of the log that belongs to a level, the
//! first image of a page is the one from when the level was opened (later ones are harmless: replay lets the
//! first win). A page that has left the cache no longer knows when it was saved; which pages were since the newest level
//! was opened is known here. Images are shared with the readers that still hold them, so saving copies nothing; past a
//! bound they move to a private file.

use iolite_base::{Buf, Code, PageData, Pgno, Result, alloc, hash::FastSet};
use iolite_os::{File, FileKind, OpenFlags, Vfs};

enum Image {
    Memory(Buf),
    Disk(u64),
}

struct Record {
    pgno: Pgno,
    /// The lowest level that lacked the image.
    level: usize,
    image: Image,
}

/// One open savepoint.
pub struct Level {
    serial: u64,
    start: usize,
    /// Pages in the database when the savepoint was opened.
    pub db_size: Pgno,
}

/// See the module's head.
#[derive(Default)]
pub struct Undo {
    levels: Vec<Level>,
    log: Vec<Record>,
    /// Pages whose image was saved since the newest level was opened, or the one above it was closed.
    saved: FastSet<Pgno>,
    in_memory: usize,
    file: Option<Box<dyn File>>,
    file_end: u64,
}

impl Undo {
    /// Open levels.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Opens a level.
    pub fn push(&mut self, serial: u64, db_size: Pgno) -> Result<()> {
        alloc::reserve(&mut self.levels, 1)?;
        self.levels.push(Level { serial, start: self.log.len(), db_size });
        self.saved.clear();
        Ok(())
    }

    /// The lowest level that lacks an image of the page.
    pub fn lacking(&self, pgno: Pgno, saved: u64) -> Option<usize> {
        // Levels below one that has the image have it, too, unless the page did not exist for them.
        let from = self.levels.iter().rposition(|l| l.serial <= saved).map_or(0, |i| i + 1);
        if from < self.levels.len() && self.saved.contains(&pgno) {
            return None;
        }
        (from..self.levels.len()).find(|&i| pgno <= self.levels[i].db_size)
    }

    /// Saves an image.
    pub fn save(&mut self, pgno: Pgno, level: usize, image: Buf) -> Result<()> {
        alloc::reserve(&mut self.log, 1)?;
        self.saved.try_reserve(1).map_err(|_| Code::Nomem)?;
        self.saved.insert(pgno);
        self.log.push(Record { pgno, level, image: Image::Memory(image) });
        self.in_memory += 1;
        Ok(())
    }

    /// Moves images to a file if more than `bound` are held.
    pub fn trim(&mut self, bound: usize, vfs: &dyn Vfs) -> Result<()> {
        if self.in_memory <= bound {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(vfs.open(None, OpenFlags::read_write(FileKind::Temp))?);
        }
        let file = self.file.as_ref().expect("opened above");
        for r in &mut self.log {
            if let Image::Memory(buf) = &r.image {
                file.write(buf, self.file_end)?;
                let at = self.file_end;
                self.file_end += buf.len() as u64;
                r.image = Image::Disk(at);
            }
        }
        self.in_memory = 0;
        Ok(())
    }

    /// Closes `depth` and all above it, keeping the changes.
    pub fn release(&mut self, depth: usize) {
        if depth >= self.levels.len() {
            return;
        }
        let start = self.levels[depth].start;
        self.levels.truncate(depth);
        self.saved.clear();
        if depth == 0 {
            // The file stays for the next statements of the transaction.
            return self.cut(0);
        }
        // Images that only the closed levels needed go; else a transaction of many small statements would
        // pile up an image per page and statement.
        let mut kept = start;
        for i in start..self.log.len() {
            if self.log[i].level < depth {
                self.log.swap(kept, i);
                kept += 1;
            }
        }
        self.cut(kept);
    }

    /// Takes the images to restore for going back to the opening of `depth`, which stays open under a new
    /// serial. Levels above it are gone.
    pub fn rollback(&mut self, depth: usize, serial: u64, page_size: usize) -> Result<Vec<(Pgno, Buf)>> {
        let start = self.levels[depth].start;
        let db_size = self.levels[depth].db_size;
        let mut seen: FastSet<Pgno> = FastSet::default();
        let mut images = Vec::new();
        for r in &self.log[start..] {
            if r.pgno > db_size || !seen.insert(r.pgno) {
                continue;
            }
            let buf = match &r.image {
                Image::Memory(buf) => buf.clone(),
                Image::Disk(at) => {
                    let mut page = PageData::zeroed(page_size)?;
                    let bytes = std::sync::Arc::get_mut(&mut page).expect("just made").as_mut();
                    self.file.as_ref().expect("holds the image").read(bytes, *at)?;
                    Buf::of_page(page)?
                }
            };
            alloc::reserve(&mut images, 1)?;
            images.push((r.pgno, buf));
        }
        self.levels.truncate(depth + 1);
        self.levels[depth].serial = serial;
        self.saved.clear();
        self.cut(start);
        Ok(images)
    }

    /// The size of the database when `depth` was opened.
    pub fn db_size(&self, depth: usize) -> Pgno {
        self.levels[depth].db_size
    }

    fn cut(&mut self, len: usize) {
        self.in_memory -= self.log[len..].iter().filter(|r| matches!(r.image, Image::Memory(_))).count();
        self.log.truncate(len);
        if len == 0 {
            self.file_end = 0;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.levels.clear();
        self.log.clear();
        self.saved.clear();
        self.in_memory = 0;
        self.file = None;
        self.file_end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(byte: u8) -> Buf {
        Buf::copy_of(&[byte; 64]).unwrap()
    }

    /// A page that left the cache and came back, so that it no longer knows when it was saved, is not saved again.
    #[test]
    fn a_page_is_saved_once_for_a_level() {
        let mut undo = Undo::default();
        undo.push(10, 5).unwrap();
        assert_eq!(undo.lacking(3, 0), Some(0));
        undo.save(3, 0, image(1)).unwrap();
        assert_eq!(undo.lacking(3, 0), None);
        // A level above wants its own image, and one that did not exist for the lower ones.
        undo.push(20, 9).unwrap();
        assert_eq!((undo.lacking(3, 0), undo.lacking(7, 0)), (Some(0), Some(1)));
        undo.save(3, 1, image(2)).unwrap();
        undo.save(7, 1, image(3)).unwrap();
        assert_eq!((undo.lacking(3, 0), undo.lacking(7, 0)), (None, None));
        // Gone back to, it has none any more.
        let back = undo.rollback(1, 30, 64).unwrap();
        assert_eq!(back.iter().map(|(p, b)| (*p, b[0])).collect::<Vec<_>>(), [(3, 2), (7, 3)]);
        assert_eq!(undo.lacking(7, 0), Some(1));
        undo.release(1);
        let back = undo.rollback(0, 40, 64).unwrap();
        assert_eq!(back.iter().map(|(p, b)| (*p, b[0])).collect::<Vec<_>>(), [(3, 1)]);
    }
}
