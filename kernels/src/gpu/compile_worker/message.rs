//! Questions to the compile worker and its answers, as bytes.
//!
//! A message is a list of fields: their number in four bytes, then each with its length in eight,
//! all little-endian. The first field says what it is.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Fields of a message at most; more is no message of ours.
const MOST_FIELDS: u32 = 1 << 12;
/// Bytes of a field at most.
const MOST_BYTES: u64 = 1 << 30;

/// What the parent wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Find the compiler, in these folders first.
    Open {
        /// The folders.
        folders: Vec<PathBuf>,
    },
    /// Compile a program.
    Compile {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
        /// What it includes: name and text.
        headers: Vec<(String, String)>,
        /// What the compiler is told.
        options: Vec<String>,
    },
}

/// What the worker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The compiler is there.
    Opened {
        /// Its version.
        version: String,
        /// Its file.
        path: PathBuf,
    },
    /// Machine code.
    Compiled {
        /// The code.
        image: Vec<u8>,
        /// What the compiler said.
        log: String,
    },
    /// The program is wrong, as the log says.
    Refused(String),
    /// Something else is, for this reason.
    Failed(String),
}

impl Question {
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Open { folders } => {
                let folders: Vec<Vec<u8>> = folders.iter().map(|folder| bytes_of(folder)).collect();
                let mut fields: Vec<&[u8]> = vec![b"open"];
                fields.extend(folders.iter().map(Vec::as_slice));
                write_fields(output, &fields)
            }
            Self::Compile { name, text, headers, options } => {
                let count = options.len().to_string();
                let mut fields = vec![&b"compile"[..], name.as_bytes(), text.as_bytes()];
                fields.push(count.as_bytes());
                fields.extend(options.iter().map(String::as_bytes));
                for (name, text) in headers {
                    fields.extend([name.as_bytes(), text.as_bytes()]);
                }
                write_fields(output, &fields)
            }
        }
    }

    /// `None` when there are no more.
    pub(super) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(fields) = read_fields(input)? else { return Ok(None) };
        let (kind, rest) = fields.split_first().ok_or_else(strange)?;
        let question = match kind.as_slice() {
            b"open" => Self::Open { folders: rest.iter().map(|bytes| path_of(bytes)).collect() },
            b"compile" => {
                let texts =
                    rest.iter().map(|bytes| text_of(bytes)).collect::<io::Result<Vec<_>>>()?;
                let [name, text, count, rest @ ..] = texts.as_slice() else {
                    return Err(strange());
                };
                let count: usize = count.parse().map_err(|_| strange())?;
                let (options, headers) = rest.split_at_checked(count).ok_or_else(strange)?;
                let (pairs, []) = headers.as_chunks::<2>() else { return Err(strange()) };
                Self::Compile {
                    name: name.clone(),
                    text: text.clone(),
                    headers: pairs.iter().cloned().map(|[name, text]| (name, text)).collect(),
                    options: options.to_vec(),
                }
            }
            _ => return Err(strange()),
        };
        Ok(Some(question))
    }
}

impl Answer {
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Opened { version, path } => {
                write_fields(output, &[b"opened", version.as_bytes(), &bytes_of(path)])
            }
            Self::Compiled { image, log } => {
                write_fields(output, &[b"compiled", image, log.as_bytes()])
            }
            Self::Refused(log) => write_fields(output, &[b"refused", log.as_bytes()]),
            Self::Failed(why) => write_fields(output, &[b"failed", why.as_bytes()]),
        }
    }

    pub(super) fn read(input: &mut impl Read) -> io::Result<Self> {
        let fields = read_fields(input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        match fields.as_slice() {
            [b"opened", version, path] => {
                Ok(Self::Opened { version: text_of(version)?, path: path_of(path) })
            }
            [b"compiled", image, log] => {
                Ok(Self::Compiled { image: image.to_vec(), log: text_of(log)? })
            }
            [b"refused", log] => Ok(Self::Refused(text_of(log)?)),
            [b"failed", why] => Ok(Self::Failed(text_of(why)?)),
            _ => Err(strange()),
        }
    }
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "this is no message of the compile worker")
}

fn write_fields(output: &mut impl Write, fields: &[&[u8]]) -> io::Result<()> {
    let count = u32::try_from(fields.len()).map_err(|_| strange())?;
    output.write_all(&count.to_le_bytes())?;
    for field in fields {
        output.write_all(&(field.len() as u64).to_le_bytes())?;
        output.write_all(field)?;
    }
    output.flush()
}

/// The fields of the next message; `None` at the end of the input.
fn read_fields(input: &mut impl Read) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut count = [0; 4];
    let mut first = [0; 1];
    if input.read(&mut first)? == 0 {
        return Ok(None);
    }
    count[0] = first[0];
    input.read_exact(&mut count[1..])?;
    let count = u32::from_le_bytes(count);
    if count > MOST_FIELDS {
        return Err(strange());
    }
    let mut fields = Vec::new();
    for _ in 0..count {
        let mut length = [0; 8];
        input.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MOST_BYTES {
            return Err(strange());
        }
        // Memory is only taken for bytes that come.
        let mut field = Vec::new();
        if input.by_ref().take(length).read_to_end(&mut field)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        fields.push(field);
    }
    Ok(Some(fields))
}

fn text_of(bytes: &[u8]) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| strange())
}

#[cfg(unix)]
fn bytes_of(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        bytes
    }

    fn questions() -> Vec<Question> {
        let text = |text: &str| text.to_owned();
        vec![
            Question::Open { folders: vec!["/opt/a b".into(), "x".into()] },
            Question::Open { folders: Vec::new() },
            Question::Compile {
                name: text("k"),
                text: text("int x;\n"),
                headers: vec![(text("a.h"), text("")), (text("b.h"), text("é"))],
                options: vec![text("-O3")],
            },
            Question::Compile {
                name: String::new(),
                text: String::new(),
                headers: Vec::new(),
                options: Vec::new(),
            },
        ]
    }

    #[test]
    fn messages_come_as_they_were_sent() {
        let all = bytes(|to| questions().iter().try_for_each(|question| question.write(to)));
        let mut input = all.as_slice();
        for question in questions() {
            assert_eq!(Question::read(&mut input).unwrap(), Some(question));
        }
        assert_eq!(Question::read(&mut input).unwrap(), None);
        for answer in [
            Answer::Opened { version: "6.2".into(), path: "/opt/x".into() },
            Answer::Compiled { image: vec![0, 255, 10], log: "fine".into() },
            Answer::Refused("no".into()),
            Answer::Failed(String::new()),
        ] {
            let sent = bytes(|to| answer.write(to));
            assert_eq!(Answer::read(&mut sent.as_slice()).unwrap(), answer);
        }
    }

    #[test]
    fn a_message_that_is_cut_or_none_is_an_error() {
        for question in questions() {
            let sent = bytes(|to| question.write(to));
            for length in 1..sent.len() {
                assert!(Question::read(&mut &sent[..length]).is_err(), "{question:?} {length}");
            }
        }
        let sent = bytes(|to| Answer::Refused("x".into()).write(to));
        assert!(Answer::read(&mut &sent[..0]).is_err());
        assert!(Question::read(&mut sent.as_slice()).is_err());
        // Lengths that nothing can have must not be allocated.
        assert!(Question::read(&mut [255_u8; 64].as_slice()).is_err());
        let mut long = 1_u32.to_le_bytes().to_vec();
        long.extend(u64::MAX.to_le_bytes());
        assert!(Question::read(&mut long.as_slice()).is_err());
    }
}
