//! The crate's one error as a family of exceptions.

use fusion_cost_model as fcm;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(fusion_cost_model, Error, PyException, "Anything that this module raises.");
create_exception!(
    fusion_cost_model,
    InvalidQuestionError,
    Error,
    "A question is wrong: a name, a chain, sizes, the text of a problem, or the order of nodes."
);
create_exception!(
    fusion_cost_model,
    UnknownNameError,
    InvalidQuestionError,
    "Nothing has a name that was given; the message suggests the nearest ones."
);
create_exception!(
    fusion_cost_model,
    NotOneKernelError,
    InvalidQuestionError,
    "The ops, or the two neighbours, cannot be one kernel."
);
create_exception!(
    fusion_cost_model,
    InvalidSizesError,
    InvalidQuestionError,
    "Sizes do not belong to their chain, or no tensor can have them."
);
create_exception!(fusion_cost_model, CannotReadError, Error, "A file cannot be read.");
create_exception!(
    fusion_cost_model,
    InvalidFileError,
    Error,
    "A file is damaged, incomplete, of another kind or version, or has values that cannot be."
);
create_exception!(
    fusion_cost_model,
    HardwareMismatchError,
    Error,
    "A calibration is of another machine than was expected."
);
create_exception!(
    fusion_cost_model,
    UndecidedError,
    Error,
    "Nothing is known, and the policy is not to guess."
);

/// The exception for an error, with its message.
pub(crate) fn raise(error: fcm::Error) -> PyErr {
    let message = error.to_string();
    if error.is_unknown_name() {
        UnknownNameError::new_err(message)
    } else if error.is_not_one_kernel() {
        NotOneKernelError::new_err(message)
    } else if error.is_invalid_sizes() {
        InvalidSizesError::new_err(message)
    } else if error.is_invalid_question() {
        InvalidQuestionError::new_err(message)
    } else if error.is_io() {
        CannotReadError::new_err(message)
    } else if error.is_invalid_file() || error.is_wrong_file() || error.is_other_version() {
        InvalidFileError::new_err(message)
    } else if error.is_hardware_mismatch() {
        HardwareMismatchError::new_err(message)
    } else if error.is_undecided() {
        UndecidedError::new_err(message)
    } else {
        Error::new_err(message)
    }
}

/// One of `known` by its name.
pub(crate) fn by_name<T: Copy>(
    what: &'static str,
    name: &str,
    known: &[(&'static str, T)],
) -> PyResult<T> {
    let found = known.iter().find(|(known, _)| *known == name);
    let names = known.iter().map(|(known, _)| *known);
    let found = found.ok_or_else(|| fcm::Error::unknown_name(what, name, names));
    found.map(|(_, value)| *value).map_err(raise)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("InvalidQuestionError", py.get_type::<InvalidQuestionError>())?;
    module.add("UnknownNameError", py.get_type::<UnknownNameError>())?;
    module.add("NotOneKernelError", py.get_type::<NotOneKernelError>())?;
    module.add("InvalidSizesError", py.get_type::<InvalidSizesError>())?;
    module.add("CannotReadError", py.get_type::<CannotReadError>())?;
    module.add("InvalidFileError", py.get_type::<InvalidFileError>())?;
    module.add("HardwareMismatchError", py.get_type::<HardwareMismatchError>())?;
    module.add("UndecidedError", py.get_type::<UndecidedError>())
}
