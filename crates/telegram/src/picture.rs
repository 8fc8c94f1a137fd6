//! What bytes that claim to be a picture are: told by their own headers, never by a name or by what a server said.
//!
//! Pure. It reads headers and decodes nothing, so that bytes from outside meet no decoder on this side of the jail.

use crate::limits::PICTURE_SIDE_PIXELS_MAX;

/// A picture of a kind that both model APIs take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// `image/jpeg`, `image/png`, `image/webp` or `image/gif`.
    pub media_type: &'static str,
    /// Width and height in pixels, as the header says.
    pub pixels: (u32, u32),
}

/// Bytes that are no picture that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPicture {
    /// They begin like none of the four kinds.
    #[error("look at a picture: its bytes are of no kind that is taken")]
    Kind,
    /// They begin like one, and have no header that says its sides.
    #[error("look at a picture: it has no whole header")]
    Header,
    /// It has no pixels, or a side beyond [`PICTURE_SIDE_PIXELS_MAX`].
    #[error("look at a picture: its sides are out of bounds")]
    Sides,
}

/// Looks at bytes.
///
/// # Errors
/// [`NoPicture`].
pub fn look(bytes: &[u8]) -> Result<Picture, NoPicture> {
    let (media_type, pixels) = if bytes.starts_with(b"\xff\xd8\xff") {
        ("image/jpeg", jpeg(bytes))
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        ("image/png", png(bytes))
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        ("image/gif", gif(bytes))
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        ("image/webp", webp(bytes))
    } else {
        return Err(NoPicture::Kind);
    };
    let (width, height) = pixels.ok_or(NoPicture::Header)?;
    if !are_sides(width, height) {
        return Err(NoPicture::Sides);
    }
    Ok(Picture { media_type, pixels: (width, height) })
}

/// Whether these can be the sides of a picture that is taken.
fn are_sides(width: u32, height: u32) -> bool {
    let side = 1..=PICTURE_SIDE_PIXELS_MAX;
    side.contains(&width) && side.contains(&height)
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(8..16)? == b"\0\0\0\rIHDR").then_some((be32(bytes, 16)?, be32(bytes, 20)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((le16(bytes, 6)?, le16(bytes, 8)?))
}

/// Walks the segments up to the frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Fill bytes, and markers without a segment.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            // Frame headers; 0xc4, 0xc8 and 0xcc are other tables.
            marker @ 0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(&marker) => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            // The picture's data, or its end, and no frame before.
            0xda | 0xd9 | 0x00 => return None,
            _ => {
                let length = usize::try_from(be16(bytes, at + 2)?).unwrap_or(usize::MAX);
                if length < 2 {
                    return None;
                }
                at += 2 + length;
            }
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    // What it says of its own size, less the eight bytes before, has to be there.
    let size = usize::try_from(le32(bytes, 4)?).unwrap_or(usize::MAX);
    if size > bytes.len().saturating_sub(8) {
        return None;
    }
    match bytes.get(12..16)? {
        b"VP8X" => Some((1 + le24(bytes, 24)?, 1 + le24(bytes, 27)?)),
        b"VP8L" => {
            let bits = le32(bytes, 21)?;
            (*bytes.get(20)? == 0x2f).then_some((1 + (bits & 0x3fff), 1 + (bits >> 14 & 0x3fff)))
        }
        b"VP8 " => (bytes.get(23..26)? == b"\x9d\x01\x2a")
            .then_some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        _ => None,
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    let [high, low] = bytes.get(at..at + 2)? else { return None };
    Some(u32::from(*high) << 8 | u32::from(*low))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(be16(bytes, at)? << 16 | be16(bytes, at + 2)?)
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    be16(bytes, at).map(|value| (value & 0xff) << 8 | value >> 8)
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    Some(le16(bytes, at)? | u32::from(*bytes.get(at + 2)?) << 16)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(le16(bytes, at)? | le16(bytes, at + 2)? << 16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How what is taken begins, and nothing.
    const BEGINNINGS: [&[u8]; 8] = [
        b"",
        b"\xff\xd8\xff",
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBPVP8X",
        b"RIFF\0\0\0\0WEBPVP8L",
        b"RIFF\0\0\0\0WEBPVP8 ",
    ];

    /// Media type and sides.
    type Seen = (&'static str, (u32, u32));

    fn of(bytes: &[u8]) -> Result<Seen, NoPicture> {
        look(bytes).map(|picture| (picture.media_type, picture.pixels))
    }

    fn png_of(width: u32, height: u32) -> Vec<u8> {
        [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(),
            &width.to_be_bytes(),
            &height.to_be_bytes(),
            b"\x08\x02",
        ]
        .concat()
    }

    #[test]
    fn each_kind_is_told_by_its_bytes_and_measured_by_its_header() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xdb\0\x03x\xff\xff\xc2\0\x11\x08\x03\xc0\x05\0\x03";
        assert_eq!(of(jpeg), Ok(("image/jpeg", (1280, 960))));
        assert_eq!(of(&png_of(7, 9)), Ok(("image/png", (7, 9))));
        assert_eq!(of(b"GIF89a\x01\x02\x03\0rest"), Ok(("image/gif", (513, 3))));
        let webp = |kind: &[u8], rest: &[u8]| {
            let size = u32::try_from(12 + rest.len()).unwrap().to_le_bytes();
            [b"RIFF", &size[..], b"WEBP", kind, b"\0\0\0\0", rest].concat()
        };
        let extended = webp(b"VP8X", b"\0\0\0\0\xff\x01\0\x0f\0\0");
        // Less than it says of itself is broken off; what stands behind it is no matter.
        assert_eq!(of(&extended[..extended.len() - 1]), Err(NoPicture::Header));
        assert!(of(&[&extended[..], b"rest"].concat()).is_ok());
        assert_eq!(of(&extended), Ok(("image/webp", (512, 16))));
        let lossy = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x40\x01\xf0\x40");
        assert_eq!(of(&lossy), Ok(("image/webp", (320, 240))));
        // 14 bits of width less one, then 14 of height less one.
        let lossless = webp(b"VP8L", &[&[0x2f][..], &(99_u32 | 49 << 14).to_le_bytes()].concat());
        assert_eq!(of(&lossless), Ok(("image/webp", (100, 50))));
    }

    #[test]
    fn what_is_none_of_them_is_refused_whatever_it_is_called() {
        for bytes in
            [&b""[..], b"<svg xmlns=", b"%PDF-1.7", b"RIFF\0\0\0\0WAVE", b"\xff\xd8", b"PK\x03\x04", b"BM"]
        {
            assert_eq!(of(bytes), Err(NoPicture::Kind));
        }
    }

    #[test]
    fn sides_are_bounded() {
        for (width, height) in [(0, 5), (5, 0), (PICTURE_SIDE_PIXELS_MAX + 1, 5), (5, u32::MAX)] {
            assert_eq!(of(&png_of(width, height)), Err(NoPicture::Sides));
        }
        assert!(look(&png_of(PICTURE_SIDE_PIXELS_MAX, 1)).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_at_all_are_any_trouble(
            kind in prop::sample::select(BEGINNINGS.to_vec()),
            mut bytes in prop::collection::vec(any::<u8>(), 0..64),
            markers in prop::collection::vec((0..64_usize, any::<u8>()), 0..8),
        ) {
            for (at, marker) in markers.into_iter().filter(|(at, _)| at + 1 < 64) {
                if let Some(pair) = bytes.get_mut(at..at + 2) {
                    pair.copy_from_slice(&[0xff, marker]);
                }
            }
            if let Ok(picture) = look(&[kind, &bytes].concat()) {
                prop_assert!(are_sides(picture.pixels.0, picture.pixels.1));
            }
        }
    }

    #[test]
    fn headers_that_break_off_anywhere_are_no_trouble() {
        let whole = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x03\xc0\x05\0\x03";
        for end in 3..whole.len() {
            let seen = of(&whole[..end]);
            assert_eq!(
                seen,
                if end >= 17 { Ok(("image/jpeg", (1280, 960))) } else { Err(NoPicture::Header) },
                "{end}"
            );
        }
        for kind in ["VP8X", "VP8L", "VP8 ", "ABCD"] {
            let start = format!("RIFF\0\0\0\0WEBP{kind}");
            assert_eq!(of(start.as_bytes()), Err(NoPicture::Header));
        }
        // A picture that ends, or begins with its data, before any frame; a segment shorter than its own length.
        for bytes in [
            &b"\x89PNG\r\n\x1a\n"[..],
            b"\x89PNG\r\n\x1a\n\0\0\0\x0eIHDR\0\0\0\x01\0\0\0\x01",
            b"GIF89a\x01\0\x01",
            b"\xff\xd8\xff",
            b"\xff\xd8\xff\xd9",
            b"\xff\xd8\xff\xda\0\x02\xff\xc0\0\x11\x08\x03\xc0\x05\0\x03",
            b"\xff\xd8\xff\xe0\0\0",
        ] {
            assert_eq!(of(bytes), Err(NoPicture::Header));
        }
    }
}
