//! A search for words that must stand nowhere: in files, their names, printed text, and what a process shows of itself.

use std::fs;
use std::path::Path;

/// Where any of the words stands below a folder: file names and contents, links not followed.
///
/// # Panics
/// When something cannot be read.
#[must_use]
pub fn in_folder(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        found.extend(in_bytes(&format!("the name of {}", path.display()), name.as_bytes(), words));
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.extend(in_folder(&path, words));
        } else if kind.is_file() {
            found.extend(in_bytes(&path.display().to_string(), &fs::read(&path).unwrap(), words));
        }
    }
    found
}

/// Where any of the words stands in bytes, as written or in base64. Words of plain letters, digits and dashes are the
/// same in JSON, in an address and in a header.
#[must_use]
pub fn in_bytes(place: &str, bytes: &[u8], words: &[&str]) -> Vec<String> {
    let holds =
        |needle: &[u8]| !needle.is_empty() && bytes.windows(needle.len()).any(|window| window == needle);
    let mut found = Vec::new();
    for word in words {
        let encoded = (0..3).any(|shift| holds(base64_inside(word.as_bytes(), shift).as_bytes()));
        if holds(word.as_bytes()) || encoded {
            found.push(format!("{word} stands in {place}"));
        }
    }
    found
}

/// Where any of the words stands in arguments or environment of a process; one that has ended shows nothing.
#[must_use]
pub fn in_process(pid: u32, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in ["cmdline", "environ", "comm"] {
        let place = format!("/proc/{pid}/{file}");
        if let Ok(bytes) = fs::read(&place) {
            found.extend(in_bytes(&place, &bytes, words));
        }
    }
    found
}

/// The part of a word's base64 that does not depend on what stands around it, when it begins `shift` bytes into a group.
fn base64_inside(word: &[u8], shift: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let skipped = (3 - shift) % 3;
    let whole = word.get(skipped..).unwrap_or_default();
    let mut text = String::new();
    for group in whole.chunks_exact(3) {
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        for place in [18, 12, 6, 0] {
            text.push(char::from(ALPHABET[(bits >> place & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_as_written_and_encoded_at_every_shift() {
        assert_eq!(in_bytes("here", b"..canary-word..", &["canary-word"]), ["canary-word stands in here"]);
        // base64 of "canary-word", "xcanary-word" and "xxcanary-word".
        for text in ["Y2FuYXJ5LXdvcmQ=", "eGNhbmFyeS13b3Jk", "eHhjYW5hcnktd29yZA=="] {
            assert_eq!(in_bytes("here", text.as_bytes(), &["canary-word"]).len(), 1, "{text}");
        }
        assert!(in_bytes("here", b"a canary, a word", &["canary-word"]).is_empty());
    }

    #[test]
    fn names_and_depths_are_searched_too() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/canary-name"), "nothing").unwrap();
        fs::write(folder.path().join("a/b"), "a canary-name").unwrap();
        assert_eq!(in_folder(folder.path(), &["canary-name"]).len(), 2);
    }
}
