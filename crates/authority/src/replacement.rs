//! The file that holds an operator's own text: read once, as it stands.
//!
//! Never through a link, never a pipe, never beyond its bound. What is done to the file afterwards changes nothing.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use thought_protocol::Sensitive;

use crate::root::look_at;

/// A file that cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementFileError {
    /// It is not there.
    #[error("read the replacement: there is no such file")]
    Absent,
    /// Its last part is a link.
    #[error("read the replacement: it is a link")]
    Link,
    /// A folder, a pipe, a device.
    #[error("read the replacement: it is no regular file")]
    NotRegular,
    /// Over the bound.
    #[error("read the replacement: it is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// Anything else.
    #[error("read the replacement: {0}")]
    Io(Errno),
}

/// The exact bytes of a regular file.
///
/// # Errors
/// [`ReplacementFileError`].
pub fn read_replacement(path: &Path, bytes_max: u64) -> Result<Sensitive<Vec<u8>>, ReplacementFileError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT | Errno::NOTDIR => ReplacementFileError::Absent,
        Errno::LOOP => ReplacementFileError::Link,
        Errno::NXIO => ReplacementFileError::NotRegular,
        other => ReplacementFileError::Io(other),
    })?;
    let found = look_at(&file).map_err(ReplacementFileError::Io)?;
    if found.kind() != FileType::RegularFile {
        return Err(ReplacementFileError::NotRegular);
    }
    let mut bytes = Vec::new();
    let read = File::from(file).take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    if let Err(error) = read {
        return Err(ReplacementFileError::Io(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
    }
    if u64::try_from(bytes.len()).map_or(true, |length| length > bytes_max) {
        return Err(ReplacementFileError::TooLarge { bytes_max });
    }
    Ok(Sensitive::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_bytes_are_read_and_nothing_but_a_regular_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("text"), b" \xffexact\r\n\n").unwrap();
        assert_eq!(read_replacement(&at("text"), 10).unwrap().expose(), b" \xffexact\r\n\n");
        assert_eq!(read_replacement(&at("text"), 9), Err(ReplacementFileError::TooLarge { bytes_max: 9 }));
        std::os::unix::fs::symlink(at("text"), at("link")).unwrap();
        assert_eq!(read_replacement(&at("link"), 10), Err(ReplacementFileError::Link));
        rustix::fs::mkfifoat(CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(read_replacement(&at("pipe"), 10), Err(ReplacementFileError::NotRegular));
        assert_eq!(read_replacement(folder.path(), 10), Err(ReplacementFileError::NotRegular));
        assert_eq!(read_replacement(&at("absent"), 10), Err(ReplacementFileError::Absent));
    }
}
