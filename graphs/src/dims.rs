//! Dimensions: known, named, or neither; and the numbers that a user gives to names.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorKind};

/// A dimension of a declared shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dim {
    /// A number.
    Known(u64),
    /// A name that a number may be given to.
    Named(String),
    /// Neither.
    Unknown,
}

/// Numbers for the dimensions that a model leaves open, such as the batch.
///
/// ```
/// use model_graphs::Dims;
///
/// let mut dims = Dims::default().with("batch", 8);
/// dims.set("sequence=128")?;
/// assert_eq!(dims.get("sequence"), Some(128));
/// # Ok::<(), model_graphs::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dims(BTreeMap<String, u64>);

impl Dims {
    /// The same, with one more number. A later number for a name replaces an earlier one.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, size: u64) -> Self {
        self.0.insert(name.into(), size);
        self
    }

    /// Reads `name=number`, as on a command line.
    ///
    /// # Errors
    ///
    /// When the text has another form, or the number is 0 or larger than a size can be:
    /// [`Error::is_invalid_dim`].
    pub fn set(&mut self, text: &str) -> Result<(), Error> {
        let fail = |reason| Error::from(ErrorKind::DimText { text: text.to_owned(), reason });
        // A name may contain `=`, as in `past=seq+1`; a number does not.
        let (name, size) = text.rsplit_once('=').ok_or_else(|| fail("it has no `=`"))?;
        let (name, size) = (name.trim(), size.trim());
        if name.is_empty() {
            return Err(fail("its name is empty"));
        }
        let size = size.parse().map_err(|_| fail("what follows `=` is not a whole number"))?;
        match size {
            0 => Err(fail("a tensor with a dimension of 0 has no elements")),
            1..=MAX_DIM => {
                self.0.insert(name.to_owned(), size);
                Ok(())
            }
            _ => Err(fail("the number is larger than a size can be")),
        }
    }

    /// The number of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Names and their numbers, by name.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &size)| (name.as_str(), size))
    }

    /// The names in alphabetical order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The largest dimension: that of the sizes of problems.
pub(crate) const MAX_DIM: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_assignment_say_why() {
        for (text, reason) in [
            ("batch", "no `=`"),
            ("=8", "name is empty"),
            ("batch=", "not a whole number"),
            ("batch=-1", "not a whole number"),
            ("batch=0", "no elements"),
            ("batch=4294967296", "larger than a size"),
            ("batch=99999999999999999999", "not a whole number"),
        ] {
            let error = Dims::default().set(text).unwrap_err();
            assert!(error.is_invalid_dim());
            assert!(error.to_string().contains(reason), "{error}");
            assert!(error.to_string().contains("such as batch=8"), "{error}");
        }
    }

    #[test]
    fn the_last_number_of_a_name_counts() {
        let mut dims = Dims::default().with("a", 1);
        dims.set(" a = 2 ").unwrap();
        dims.set("a=b=3").unwrap();
        assert_eq!((dims.get("a"), dims.get("a=b"), dims.get("c")), (Some(2), Some(3), None));
    }
}
