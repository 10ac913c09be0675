//! The libraries and devices of a backend.

use fusion_cost_model::Backend;

use super::{Finding, Status, permissions};
use crate::exit::{self, InterruptedError};
use crate::run::Target;
use crate::stop::Stop;
use crate::worker::{Device, NoAnswer, SURVEY_LIMIT, SurveyTask, Surveyed, probe};

/// The libraries and devices of a backend that were found.
pub(super) struct Libraries {
    /// What was found.
    pub(super) findings: Vec<Finding>,
    /// The device, if it can be used.
    pub(super) target: Option<Target>,
}

/// Looks for the libraries and devices of a backend, and opens one. It finds nothing more once the user
/// wants it to end.
pub(super) fn look(device: &Device, stop: &Stop) -> Libraries {
    let mut findings = Vec::new();
    let backend = device.backend;
    if backend != Backend::Cpu {
        let surveyed = match probe(device, SurveyTask, SURVEY_LIMIT, stop) {
            Ok(surveyed) => surveyed,
            Err(NoAnswer::Stopped) => return Libraries { findings, target: None },
            Err(reason) => Surveyed { lines: vec![reason.to_string()], has_devices: false },
        };
        let status = if surveyed.has_devices { Status::Passed } else { Status::Missing };
        findings.push(Finding::new("libraries and devices", status, surveyed.lines));
        if status == Status::Missing {
            findings.extend(permissions::of(backend));
            return Libraries { findings, target: None };
        }
    }
    match Target::find(device.clone(), stop) {
        Ok(target) => Libraries { findings, target: Some(target) },
        Err(error) if error.is::<InterruptedError>() => Libraries { findings, target: None },
        Err(error) => {
            findings.push(Finding::new("device", Status::Missing, vec![exit::message(&error)]));
            findings.extend(permissions::of(backend));
            Libraries { findings, target: None }
        }
    }
}
