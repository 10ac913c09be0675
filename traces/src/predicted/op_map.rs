//! Which kernels operators are, and which operators cost nothing.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{InputWarning, PredictedError, Rules, file};

/// The key under which real files have their entries.
const NESTED: &str = "operator_mappings";

/// What a map says of operators. Only `kernel_type` and `zero_cost` of an entry matter here; what
/// else it has is for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpMap {
    entries: FxHashMap<String, Entry>,
    /// What cannot be used.
    pub warnings: Vec<InputWarning>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Entry {
    kernel_type: Option<String>,
    zero_cost: bool,
}

impl OpMap {
    /// Reads a map.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a YAML mapping.
    pub fn load(path: impl AsRef<Path>, rules: Rules) -> Result<Self, PredictedError> {
        let path = path.as_ref();
        let failure = |reason| PredictedError::NotAMap { path: path.to_owned(), reason };
        let text = file::text(file::read(path)?).map_err(failure)?;
        Self::from_yaml(&text, rules).map_err(failure)
    }

    /// Reads a map from its text. Under the original rules, entries are found at the top level
    /// only.
    ///
    /// # Errors
    ///
    /// What is wrong, when it is not a YAML mapping.
    pub fn from_yaml(text: &str, rules: Rules) -> Result<Self, String> {
        let duplicate_keys = match rules {
            Rules::Own => DuplicateKeyPolicy::Error,
            Rules::Original => DuplicateKeyPolicy::LastWins,
        };
        let options =
            serde_saphyr::options! { duplicate_keys: duplicate_keys, with_snippet: false };
        let value: Value = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| error.to_string().replace('\n', " "))?;
        let mut top = match value {
            Value::Null => Map::new(),
            Value::Object(top) => top,
            _ => return Err("its top level is not a mapping".to_owned()),
        };
        let mut map = Self::default();
        let nested = match rules {
            Rules::Own => top.remove(NESTED),
            Rules::Original => None,
        };
        // The file also has versions, policies and the like.
        for (operator, value) in &top {
            map.add(operator, value, false);
        }
        match &nested {
            None | Some(Value::Null) => {}
            Some(Value::Object(nested)) => {
                for (operator, value) in nested {
                    map.add(operator, value, true);
                }
            }
            Some(_) => return Err(format!("`{NESTED}` is not a mapping")),
        }
        if map.entries.is_empty() {
            map.warnings.push(InputWarning::EmptyMap);
        }
        Ok(map)
    }

    /// Adds an entry; a malformed one gives a warning.
    fn add(&mut self, operator: &str, value: &Value, is_entry: bool) {
        let mut warn = |reason: &str| {
            let (operator, reason) = (operator.to_owned(), reason.to_owned());
            self.warnings.push(InputWarning::BadMapEntry { operator, reason });
        };
        let Value::Object(object) = value else {
            if is_entry {
                warn("it is not a mapping");
            }
            return;
        };
        let kernel_type = match object.get("kernel_type") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if !name.trim().is_empty() => Some(name.trim().to_owned()),
            Some(_) => {
                warn("its kernel_type is not a name");
                None
            }
        };
        let zero_cost = match object.get("zero_cost") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(zero_cost)) => *zero_cost,
            Some(_) => {
                warn("its zero_cost is neither true nor false");
                false
            }
        };
        if kernel_type.is_some() || zero_cost {
            self.entries.insert(operator.to_owned(), Entry { kernel_type, zero_cost });
        }
    }

    /// How many operators it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an operator takes no time on the device.
    #[must_use]
    pub fn is_zero_cost(&self, operator: &str) -> bool {
        self.entry(operator).is_some_and(|entry| entry.zero_cost)
    }

    /// The kernel that an operator is.
    #[must_use]
    pub fn kernel_type(&self, operator: &str) -> Option<&str> {
        self.entry(operator)?.kernel_type.as_deref()
    }

    fn entry(&self, operator: &str) -> Option<&Entry> {
        self.entries.get(&short(operator)).or_else(|| self.entries.get(operator))
    }
}

/// The name of an operator as maps have it.
pub(super) fn short(operator: &str) -> String {
    operator.replace("torch.ops.", "")
}
