//! Whether a library file is whole.
//!
//! The system's loader maps the segments that a file's header names without looking at its size.
//! What lies behind the end of a file that is cut, such as a download that broke off, ends the
//! process when it is touched.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of the header of a 64-bit file, and of one of its program headers.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// A segment that is mapped.
const PT_LOAD: u32 = 1;

/// Whether a file is a 64-bit little-endian ELF file whose segments go beyond its end. Of all
/// others, the loader says itself what is wrong.
#[must_use]
pub fn is_cut(path: &Path) -> bool {
    File::open(path).and_then(|mut file| segments_end(&mut file)).unwrap_or(false)
}

fn segments_end(file: &mut File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(false);
    }
    // e_phoff, e_phentsize and e_phnum of the ELF-64 object file format.
    let (at, size, count) = (u64_at(&header, 32), u16_at(&header, 54), u16_at(&header, 56));
    if usize::from(size) != PROGRAM_HEADER {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(at))?;
    let mut headers = vec![0; PROGRAM_HEADER * usize::from(count)];
    if file.read_exact(&mut headers).is_err() {
        return Ok(true);
    }
    let is_beyond = |header: &[u8]| {
        // p_type, p_offset and p_filesz.
        let end = u64_at(header, 8).checked_add(u64_at(header, 32));
        u32_at(header, 0) == PT_LOAD && end.is_none_or(|end| end > length)
    };
    Ok(headers.chunks_exact(PROGRAM_HEADER).any(is_beyond))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}
