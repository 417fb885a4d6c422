//! A file that is not whole yet.
//!
//! Its first bytes are in the part, what is known of them in the mark beside it. Bytes are trusted
//! as far as the mark says: the mark is written after they were forced to the disk (every
//! [`super::Patience::sync_every`] bytes, at every pause and failure, and at the end), by a rename
//! of a file that was itself forced to the disk. So after a crash or a power cut at any moment what
//! is trusted is what was received; what lies behind it is cut off and fetched again.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::Disk;
use crate::hub::{HubFile, Place};

/// The version of [`Mark`]'s form.
const FORM: u32 = 1;

/// What is known of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The form of what follows.
    pub form: u32,
    /// Which model it belongs to.
    pub model: HubFile,
    /// The path of this file in the repository.
    pub path: String,
    /// The commit that it was announced for.
    pub commit: String,
    /// The content's name.
    pub etag: String,
    /// Bytes of the whole file.
    pub size: u64,
    /// How many of the part's bytes can be trusted.
    pub trusted: u64,
    /// The strong entity tag under which they were sent, for `If-Range`.
    #[serde(default)]
    pub sent_as: Option<String>,
}

impl Mark {
    /// A mark for a file of which nothing is here.
    pub(super) fn new(model: &HubFile, path: &str, commit: &str, etag: &str, size: u64) -> Self {
        Self {
            form: FORM,
            model: model.clone(),
            path: path.into(),
            commit: commit.into(),
            etag: etag.into(),
            size,
            trusted: 0,
            sent_as: None,
        }
    }

    /// Reads the mark at `path`. `None` when there is none that can be understood: then nothing of
    /// its part can be trusted.
    pub fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mark: Self = serde_json::from_str(&text).ok()?;
        (mark.form == FORM && mark.trusted <= mark.size).then_some(mark)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("json.new");
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        let mut file = File::create(&new)?;
        io::Write::write_all(&mut file, &text)?;
        file.sync_data()?;
        drop(file);
        fs::rename(&new, path)
    }
}

/// The checksums of what is here.
#[derive(Clone)]
struct Sums {
    sha256: Sha256,
    /// Git's name for a blob: SHA-1 over its length and its bytes.
    git: Sha1,
}

impl Sums {
    fn new(size: u64) -> Self {
        let mut git = Sha1::new();
        git.update(format!("blob {size}\0"));
        Self { sha256: Sha256::new(), git }
    }

    fn add(&mut self, bytes: &[u8], etag: &str) {
        self.sha256.update(bytes);
        // Small files only have such a name; for large ones it would be wasted.
        if is_git_name(etag) {
            self.git.update(bytes);
        }
    }

    fn checked(&self, etag: &str) -> Checked {
        let sha256 = hex::encode(self.sha256.clone().finalize());
        let etag = etag.to_lowercase();
        let announced = if is_sha256(&etag) {
            Some((etag, sha256.clone()))
        } else if is_git_name(&etag) {
            Some((etag, hex::encode(self.git.clone().finalize())))
        } else {
            None
        };
        Checked { sha256, announced }
    }
}

/// Whether a content's name is a SHA-256.
fn is_sha256(etag: &str) -> bool {
    etag.len() == 64 && etag.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a content's name is git's.
fn is_git_name(etag: &str) -> bool {
    etag.len() == 40 && etag.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The part of one file, open for writing.
pub(super) struct Part {
    file: File,
    mark: Mark,
    mark_path: std::path::PathBuf,
    /// Bytes in the file; the next ones go behind them.
    written: u64,
    sums: Sums,
    sync_every: u64,
}

/// What a finished part is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) sha256: String,
    /// The announced name, and what the bytes give for it, where that can be computed.
    pub(super) announced: Option<(String, String)>,
}

impl Part {
    /// Opens the part at `place`; what cannot be trusted, or belongs to another content, is cut
    /// off. The bytes that stay have yet to be summed by [`Part::sum_up`].
    pub(super) fn open(place: &Place, fresh: Mark, sync_every: u64) -> io::Result<Self> {
        if let Some(folder) = place.part.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&place.part)?;
        let known = Mark::read(&place.mark)
            .filter(|mark| mark.etag == fresh.etag && mark.size == fresh.size);
        let here = file.metadata()?.len();
        let (trusted, sent_as) = match known {
            Some(mark) => (mark.trusted.min(here), mark.sent_as),
            None => (0, None),
        };
        file.set_len(trusted)?;
        let mark = Mark { trusted, sent_as, ..fresh };
        mark.write(&place.mark)?;
        Ok(Self {
            file,
            written: trusted,
            sums: Sums::new(mark.size),
            mark,
            mark_path: place.mark.clone(),
            sync_every: sync_every.max(1),
        })
    }

    /// Bytes that are here.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of the whole file.
    pub(super) fn size(&self) -> u64 {
        self.mark.size
    }

    /// Under which entity tag they were sent.
    pub(super) fn sent_as(&self) -> Option<&str> {
        self.mark.sent_as.as_deref()
    }

    /// Remembers under which entity tag the bytes are sent.
    pub(super) fn set_sent_as(&mut self, etag: Option<String>) {
        self.mark.sent_as = etag;
    }

    /// Sums up the bytes that are here. `tell` hears how many are done and says whether to go on.
    /// Returns whether it went to the end.
    pub(super) fn sum_up(&mut self, tell: &mut dyn FnMut(u64) -> bool) -> io::Result<bool> {
        self.sums = Sums::new(self.mark.size);
        self.file.seek(SeekFrom::Start(0))?;
        let mut block = vec![0; 1 << 20];
        let mut done = 0;
        while done < self.written {
            if !tell(done) {
                return Ok(false);
            }
            let want = block.len().min(usize::try_from(self.written - done).unwrap_or(usize::MAX));
            self.file.read_exact(&mut block[..want])?;
            self.sums.add(&block[..want], &self.mark.etag);
            done += want as u64;
        }
        Ok(true)
    }

    /// Adds `bytes` behind those that are here.
    pub(super) fn append(&mut self, bytes: &[u8], disk: &dyn Disk) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.written))?;
        if let Err(error) = disk.write(&mut self.file, bytes) {
            // Some of them may have been written: back to a length that is known.
            self.file.set_len(self.written)?;
            return Err(error);
        }
        self.written += bytes.len() as u64;
        self.sums.add(bytes, &self.mark.etag);
        if self.written - self.mark.trusted >= self.sync_every {
            self.sync()?;
        }
        Ok(())
    }

    /// Forces what is here to the disk; from then on it is trusted.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.mark.trusted = self.written;
        self.mark.write(&self.mark_path)
    }

    /// Begins again with nothing.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.mark.trusted = 0;
        self.mark.sent_as = None;
        self.mark.write(&self.mark_path)?;
        self.file.set_len(0)?;
        self.written = 0;
        self.sums = Sums::new(self.mark.size);
        Ok(())
    }

    /// The checksums of the whole file, which must be here.
    pub(super) fn check(&self) -> Checked {
        self.sums.checked(&self.mark.etag)
    }
}

/// The checksums of a whole file that is to have the name `etag`. `on` says whether to go on; `None`
/// when it did not.
pub(super) fn check_file(
    path: &Path,
    etag: &str,
    on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Option<Checked>> {
    let mut file = File::open(path)?;
    let mut sums = Sums::new(file.metadata()?.len());
    let mut block = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        if !on(done) {
            return Ok(None);
        }
        match file.read(&mut block)? {
            0 => return Ok(Some(sums.checked(etag))),
            read => {
                sums.add(&block[..read], etag);
                done += read as u64;
            }
        }
    }
}

/// Removes a part and its mark.
pub(super) fn remove(place: &Place) -> io::Result<()> {
    for path in [&place.part, &place.mark, &place.mark.with_extension("json.new")] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::download::RealDisk;

    const COMMIT: &str = "0123456789012345678901234567890123456789";

    struct Given {
        _dir: tempfile::TempDir,
        place: Place,
        mark: Mark,
    }

    fn given(content: &[u8]) -> Given {
        let dir = tempfile::tempdir().unwrap();
        let model = HubFile::new("a/b", "m.gguf", None).unwrap();
        let etag = hex::encode(Sha256::digest(content));
        let place = Place::new(dir.path(), &model, "m.gguf", COMMIT, &etag).unwrap();
        let mark = Mark::new(&model, "m.gguf", COMMIT, &etag, content.len() as u64);
        Given { _dir: dir, place, mark }
    }

    impl Given {
        fn open(&self) -> Part {
            let mut part = Part::open(&self.place, self.mark.clone(), 4).unwrap();
            assert!(part.sum_up(&mut |_| true).unwrap());
            part
        }
    }

    #[test]
    fn a_part_goes_on_from_what_was_forced_to_the_disk() {
        let given = given(b"0123456789");
        let mut part = given.open();
        part.append(b"01234", &RealDisk).unwrap();
        part.append(b"56", &RealDisk).unwrap();
        drop(part); // As after a crash: the last two bytes were never forced.
        let mut part = given.open();
        assert_eq!(part.written(), 5);
        part.append(b"56789", &RealDisk).unwrap();
        let Checked { sha256, announced } = part.check();
        assert_eq!(announced, Some((sha256.clone(), sha256)));
    }

    #[test]
    fn zeros_behind_the_trusted_bytes_are_cut_off() {
        let given = given(b"0123456789");
        let mut part = given.open();
        part.append(b"0123", &RealDisk).unwrap();
        drop(part);
        let file = File::options().write(true).open(&given.place.part).unwrap();
        file.set_len(10).unwrap(); // As some file systems leave it after a power cut.
        assert_eq!(given.open().written(), 4);
    }

    #[test]
    fn without_a_mark_that_fits_nothing_is_trusted() {
        let given = given(b"0123456789");
        let mut part = given.open();
        part.append(b"01234567", &RealDisk).unwrap();
        drop(part);
        let mark = fs::read_to_string(&given.place.mark).unwrap();
        for text in [
            "",
            "{",
            &mark.replace("\"form\":1", "\"form\":9"),
            &mark.replace(&given.mark.etag, "other"),
        ] {
            fs::write(&given.place.mark, text).unwrap();
            fs::write(&given.place.part, "01234567").unwrap();
            assert_eq!(given.open().written(), 0, "{text}");
        }
    }

    #[test]
    fn a_small_file_is_checked_by_gits_name() {
        let given = given(b"hello\n");
        let etag = "ce013625030ba8dba906f756967f9e9ca394464a";
        let mark = Mark { etag: etag.into(), ..given.mark.clone() };
        let mut part = Part::open(&given.place, mark, 100).unwrap();
        part.append(b"hello\n", &RealDisk).unwrap();
        assert_eq!(part.check().announced, Some((etag.into(), etag.into())));
    }

    #[test]
    fn a_failed_write_leaves_a_length_that_is_known() {
        struct Half;
        impl Disk for Half {
            fn free(&self, _: &Path) -> io::Result<u64> {
                Ok(0)
            }
            fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
                io::Write::write_all(file, &bytes[..bytes.len() / 2])?;
                Err(io::ErrorKind::StorageFull.into())
            }
        }
        let given = given(b"0123456789");
        let mut part = given.open();
        part.append(b"0123", &RealDisk).unwrap();
        assert!(part.append(b"4567", &Half).is_err());
        part.append(b"456789", &RealDisk).unwrap();
        part.sync().unwrap();
        assert_eq!(fs::read(&given.place.part).unwrap(), b"0123456789");
    }
}
