//! A calibration and what follows from it.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::Arc;

use fusion_cost_model::FusionCostModel;
use fusion_cost_model::calibration::HardwareCalibration;

use crate::error::{Error, Status, make};
use crate::target::Target;
use crate::text::{path, text, text_of_length};

/// What a calibration file says, ready to be asked.
#[derive(Debug)]
pub struct Model {
    pub(crate) model: Arc<FusionCostModel>,
    targets: Vec<Target>,
}

impl Model {
    fn of(model: FusionCostModel, expected: Option<&str>) -> Result<Self, Error> {
        let model = match expected {
            Some(name) => model.expecting_hardware(name)?,
            None => model,
        };
        // A runtime has a name and a version, which no number stands for.
        let known = model.targets().iter().filter(|one| one.implementation.runtime().is_none());
        let targets = known.map(Target::of).collect::<Result<_, _>>()?;
        Ok(Self { model: Arc::new(model), targets })
    }
}

/// The name of a machine, if there is one.
///
/// # Safety
///
/// `name` is null, or ends with a NUL and stays as it is for `'a`.
unsafe fn expected<'a>(name: *const c_char) -> Result<Option<&'a str>, Error> {
    // SAFETY: what the caller of this function promises.
    (!name.is_null()).then(|| unsafe { text(name, "hardware") }).transpose()
}

/// Loads a calibration file. Where `hardware` is not NULL, the file must be of the machine with this
/// id, name or alias. Free the model with `fcm_model_free`.
///
/// # Safety
///
/// `path`, and `hardware` unless it is NULL, end with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_model_load(
    path: *const c_char,
    hardware: *const c_char,
    model: Option<&mut MaybeUninit<Option<Box<Model>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(model, error, || {
        // SAFETY: what the caller of this function promises.
        let (path, hardware) = unsafe { (self::path(path)?, expected(hardware)?) };
        Model::of(FusionCostModel::load(path)?, hardware)
    })
}

/// Reads the contents of a calibration file, `length` bytes of UTF-8. See `fcm_model_load`.
///
/// # Safety
///
/// `contents` leads to `length` bytes, and `hardware` ends with a NUL unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcm_model_of_text(
    contents: *const c_char,
    length: usize,
    hardware: *const c_char,
    model: Option<&mut MaybeUninit<Option<Box<Model>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> Status {
    make(model, error, || {
        // SAFETY: what the caller of this function promises.
        let (contents, hardware) =
            unsafe { (text_of_length(contents, length, "contents")?, expected(hardware)?) };
        Model::of(FusionCostModel::new(HardwareCalibration::from_toml(contents)?), hardware)
    })
}

/// Frees a model. What was bound to a target of it stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_model_free(model: Option<Box<Model>>) {
    drop(model);
}

/// The targets that the file has records for, in a fixed order, and their number in `count`. Belong to
/// the model.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_model_targets(
    model: Option<&Model>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *const Target {
    let targets = model.map_or(&[][..], |model| &model.targets);
    if let Some(count) = count {
        count.write(targets.len());
    }
    if targets.is_empty() { null() } else { targets.as_ptr() }
}

/// The example that the tests of this crate ask.
#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::CString;

    use super::*;
    use crate::error::{
        FCM_CANNOT_READ, FCM_HARDWARE_MISMATCH, FCM_INVALID_ARGUMENT, FCM_INVALID_FILE, FCM_OK,
        FCM_WRONG_FILE, fcm_error_message, fcm_error_status,
    };
    use crate::target::fcm_target_cpu;
    use crate::text::array;
    use crate::text::tests::read;

    pub(crate) const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

    pub(crate) fn example() -> Box<Model> {
        load(EXAMPLE, None).unwrap()
    }

    pub(crate) fn load(
        contents: &str,
        hardware: Option<&str>,
    ) -> Result<Box<Model>, (Status, String)> {
        let hardware = hardware.map(|hardware| CString::new(hardware).unwrap());
        let (mut model, mut error) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `contents` has the length that it says, and `hardware` ends with a NUL.
        let status = unsafe {
            fcm_model_of_text(
                contents.as_ptr().cast(),
                contents.len(),
                hardware.as_ref().map_or(null(), |hardware| hardware.as_ptr()),
                Some(&mut model),
                Some(&mut error),
            )
        };
        // SAFETY: the call wrote both.
        let (model, error) = unsafe { (model.assume_init(), error.assume_init()) };
        match (model, error) {
            (Some(model), None) if status == FCM_OK => Ok(model),
            (None, Some(error)) => {
                assert_eq!(fcm_error_status(Some(&error)), status);
                Err((status, read(fcm_error_message(Some(&error)))))
            }
            (model, error) => panic!("{status} {model:?} {error:?}"),
        }
    }

    #[test]
    fn a_file_has_targets() {
        let model = example();
        let mut count = MaybeUninit::uninit();
        let targets = fcm_model_targets(Some(&model), Some(&mut count));
        // SAFETY: the call wrote the count, and the targets belong to the model.
        let targets = unsafe { array(targets, count.assume_init(), "targets") }.unwrap();
        assert_eq!(targets, [fcm_target_cpu(2)]);
        assert!(fcm_model_targets(None, None).is_null());
        fcm_model_free(Some(model));
        fcm_model_free(None);
    }

    #[test]
    fn a_file_from_the_disk_is_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/example.toml\0");
        let (mut model, mut error) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let mut load = |path: &str| {
            assert!(path.ends_with('\0'));
            // SAFETY: the path ends with a NUL, as was just checked.
            let status = unsafe {
                fcm_model_load(path.as_ptr().cast(), null(), Some(&mut model), Some(&mut error))
            };
            // SAFETY: the call wrote both; what was there before is dropped by the last call.
            let (model, error) = unsafe { (model.assume_init_mut(), error.assume_init_mut()) };
            (status, model.take(), error.take())
        };
        let (status, loaded, error) = load(path);
        assert!(status == FCM_OK && error.is_none());
        assert_eq!(loaded.unwrap().targets, example().targets);
        let (status, loaded, error) = load("/no/such/file.toml\0");
        assert!(status == FCM_CANNOT_READ && loaded.is_none());
        let message = read(fcm_error_message(error.as_deref()));
        assert!(message.starts_with("cannot read /no/such/file.toml: "), "{message}");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert!(
            load(EXAMPLE, Some("intel-xeon-processor")).is_ok_and(|model| model.targets.len() == 1)
        );
        let (status, message) = load(EXAMPLE, Some("i7-12700k")).unwrap_err();
        assert!(status == FCM_HARDWARE_MISMATCH && message.contains("i7-12700k"), "{message}");
        let (status, message) =
            load("kind = \"hardware\"\nschema_version = 2\n", None).unwrap_err();
        assert!(status == FCM_WRONG_FILE && message.contains("hardware profile"), "{message}");
        let (status, _) = load("kind =", None).unwrap_err();
        assert_eq!(status, FCM_INVALID_FILE);
        // SAFETY: the path is null, which is refused.
        let status = unsafe { fcm_model_load(null(), null(), None, None) };
        assert_eq!(status, FCM_INVALID_ARGUMENT);
    }
}
