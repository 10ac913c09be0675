//! Questions and answers, as the bodies of frames.

use serde::Serialize;
use serde::de::DeserializeOwned;

use rmp_serde::{Deserializer, Serializer};

/// Something that a worker can be asked, and the type of its answer.
pub trait Question: Serialize + DeserializeOwned {
    /// Its name, which no other question of the program has.
    const NAME: &'static str;
    /// What the worker answers.
    type Answer: Serialize + DeserializeOwned;
}

/// A body that has a name, and content that was not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// What follows the name.
    pub content: Vec<u8>,
}

/// A body with a name and content.
///
/// # Errors
///
/// Why the content cannot be written.
pub fn body(name: &str, content: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    // The names of fields are written: fields that are absent when they are empty, as in the
    // calibration file's types, can only be identified by name.
    let mut serializer = Serializer::new(&mut body).with_struct_map();
    name.serialize(&mut serializer)
        .and_then(|()| content.serialize(&mut serializer))
        .map_err(|error| error.to_string())?;
    Ok(body)
}

impl Message {
    /// The name of a body and the rest of it.
    ///
    /// # Errors
    ///
    /// Why it has none.
    pub fn of(body: &[u8]) -> Result<Self, String> {
        let mut deserializer = Deserializer::new(body);
        let name: String = serde::Deserialize::deserialize(&mut deserializer)
            .map_err(|error| format!("it has no name: {error}"))?;
        Ok(Self { name, content: deserializer.get_ref().to_vec() })
    }

    /// The content.
    ///
    /// # Errors
    ///
    /// Why it is something else.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T, String> {
        let mut deserializer = Deserializer::new(self.content.as_slice());
        let content = T::deserialize(&mut deserializer).map_err(|error| error.to_string())?;
        match deserializer.get_ref() {
            [] => Ok(content),
            rest => Err(format!("{} bytes follow it", rest.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Sample {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        absent: Option<u32>,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        number: f64,
        text: Result<String, u8>,
    }

    fn sample(length: usize) -> Sample {
        let bytes = (0..length).map(|index| index as u8).collect();
        Sample { absent: None, bytes, number: f64::INFINITY, text: Ok("é".to_owned()) }
    }

    #[test]
    fn content_comes_as_it_was_sent_and_bytes_stay_bytes() {
        let sent = sample(5_000_000);
        let body = body("sample", &sent).unwrap();
        assert!(body.len() < 5_000_100, "{}", body.len());
        let message = Message::of(&body).unwrap();
        assert_eq!(message.name, "sample");
        assert_eq!(message.content::<Sample>().unwrap(), sent);
    }

    #[test]
    fn another_type_is_an_error_and_so_is_anything_that_follows() {
        let mut body = body("sample", &sample(3)).unwrap();
        assert!(Message::of(&body).unwrap().content::<Vec<String>>().is_err());
        body.push(0);
        let error = Message::of(&body).unwrap().content::<Sample>().unwrap_err();
        assert_eq!(error, "1 bytes follow it");
        assert!(Message::of(b"").is_err());
        assert!(Message::of(&[0xc1; 20]).is_err());
    }

    #[test]
    fn a_truncated_body_is_an_error() {
        let body = body("sample", &sample(100)).unwrap();
        for length in 0..body.len() {
            let read = Message::of(&body[..length]).and_then(|it| it.content::<Sample>());
            assert!(read.is_err(), "{length}");
        }
        // A length of bytes that are not there takes no memory.
        let huge = [&b"\xa1n"[..], &[0xc6, 0xff, 0xff, 0xff, 0xff]].concat();
        assert!(Message::of(&huge).unwrap().content::<serde_bytes::ByteBuf>().is_err());
    }
}
