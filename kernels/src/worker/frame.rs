//! The greeting and the frames: what goes over the pipes, as bytes.

use std::io::{self, Read, Write};

use super::VERSION;

/// Bytes of a body at most. Compiled kernels have megabytes.
const MOST_BYTES: u64 = 1 << 30;

/// What the greeting begins with; the version and a line feed follow.
const GREETING: &[u8] = b"\0calibrate worker protocol ";

/// Bytes that may come before the greeting.
const MOST_BEFORE_GREETING: usize = 1 << 20;

/// Characters of a version at most.
const MOST_VERSION: usize = 20;

/// What is wrong with a greeting.
#[derive(Debug)]
pub enum NoGreeting {
    /// It cannot be read, most likely because the worker has ended.
    Unread,
    /// There is none.
    Missing,
    /// It is that of another version.
    Version(String),
}

/// Writes the greeting of a worker.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_greeting(output: &mut impl Write) -> io::Result<()> {
    output.write_all(GREETING)?;
    writeln!(output, "{VERSION}")?;
    output.flush()
}

/// Skips everything up to the greeting, and the greeting.
///
/// # Errors
///
/// [`NoGreeting`].
pub fn read_greeting(input: &mut impl Read) -> Result<(), NoGreeting> {
    let mut before = Vec::new();
    while !before.ends_with(GREETING) {
        if before.len() > MOST_BEFORE_GREETING {
            return Err(NoGreeting::Missing);
        }
        before.push(byte(input)?);
    }
    let mut version = Vec::new();
    loop {
        match byte(input)? {
            b'\n' => break,
            _ if version.len() == MOST_VERSION => return Err(NoGreeting::Missing),
            byte => version.push(byte),
        }
    }
    if version == VERSION.to_string().as_bytes() {
        Ok(())
    } else {
        Err(NoGreeting::Version(String::from_utf8_lossy(&version).into_owned()))
    }
}

fn byte(input: &mut impl Read) -> Result<u8, NoGreeting> {
    let mut byte = [0; 1];
    input.read_exact(&mut byte).map_err(|_| NoGreeting::Unread)?;
    Ok(byte[0])
}

/// Whether a body is short enough.
pub(super) fn fits(body: &[u8]) -> bool {
    body.len() as u64 <= MOST_BYTES
}

/// Writes a body that fits.
///
/// # Errors
///
/// When it cannot be written.
pub fn write(output: &mut impl Write, body: &[u8]) -> io::Result<()> {
    output.write_all(&(body.len() as u64).to_le_bytes())?;
    output.write_all(body)?;
    output.flush()
}

/// The body of the next frame; `None` at the end of the input.
///
/// # Errors
///
/// An input that ends within a frame is [`io::ErrorKind::UnexpectedEof`], and a length that no
/// frame has [`io::ErrorKind::InvalidData`].
pub fn read(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    input.by_ref().take(8).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(None);
    }
    let length: [u8; 8] = head.try_into().map_err(|_| truncated())?;
    let length = u64::from_le_bytes(length);
    if length > MOST_BYTES {
        let text = format!("a frame of {length} bytes is longer than any may be");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    // Memory is only taken for bytes that come.
    let mut body = Vec::new();
    if input.by_ref().take(length).read_to_end(&mut body)? as u64 != length {
        return Err(truncated());
    }
    Ok(Some(body))
}

fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends in the middle of a frame")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, body).unwrap();
        bytes
    }

    #[test]
    fn frames_come_as_they_were_sent() {
        let bodies: [&[u8]; 3] = [b"one", b"", &[0xff; 100_000]];
        let sent: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
        let mut input = sent.as_slice();
        for body in bodies {
            assert_eq!(read(&mut input).unwrap().unwrap(), body);
        }
        assert_eq!(read(&mut input).unwrap(), None);
    }

    #[test]
    fn a_truncated_frame_is_an_error() {
        let sent = framed(b"body");
        for length in 1..sent.len() {
            let error = read(&mut &sent[..length]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
        }
    }

    #[test]
    fn a_length_that_no_frame_has_is_an_error_and_takes_no_memory() {
        for head in [u64::MAX, MOST_BYTES + 1, u64::from_le_bytes(*b"loading ")] {
            let error = read(&mut head.to_le_bytes().as_slice()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{head}");
        }
        // The longest one is only as long as what comes.
        let error = read(&mut MOST_BYTES.to_le_bytes().as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_greeting_is_found_behind_what_others_print() {
        let mut sent = b"loading\n\0calibrate wor".to_vec();
        write_greeting(&mut sent).unwrap();
        sent.extend(b"rest");
        let mut input = sent.as_slice();
        assert!(read_greeting(&mut input).is_ok());
        assert_eq!(input, b"rest");
    }

    #[test]
    fn another_version_is_named_and_no_greeting_is_an_error() {
        let other = [GREETING, b"17\n"].concat();
        let answer = read_greeting(&mut other.as_slice());
        assert!(matches!(answer, Err(NoGreeting::Version(version)) if version == "17"));
        let endless = [GREETING, &[b'1'; 100]].concat();
        assert!(matches!(read_greeting(&mut endless.as_slice()), Err(NoGreeting::Missing)));
        assert!(matches!(read_greeting(&mut io::repeat(b'y')), Err(NoGreeting::Missing)));
        assert!(matches!(read_greeting(&mut &b"hello"[..]), Err(NoGreeting::Unread)));
    }
}
