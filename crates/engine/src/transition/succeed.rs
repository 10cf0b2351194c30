//! A step succeeds, with its results.

use super::{Machine, size};
use crate::advance::WriteNeed;
use crate::expression::EvalError;
use crate::expression::jsonpath::ParsedBody;
use crate::flow::{Action, ImplicitResult, StepIndex};
use crate::observation::Response;
use crate::retry;
use crate::run::{StepPhase, StepResult, reason};

impl Machine<'_> {
    /// The target answered: 2xx is success, anything else a failed attempt.
    pub(super) fn response(&mut self, step: StepIndex, response: &Response) {
        if !(200..300).contains(&response.status) {
            let asked = retry::retry_after(&response.headers);
            self.keep_implicit_results(step, response);
            return self.attempt_failed(
                step,
                reason::HTTP_STATUS,
                &format!("the target answered HTTP {}", response.status),
                asked,
            );
        }
        match self.results(step, response) {
            Ok(results) => self.succeed(step, results, WriteNeed::Soon),
            Err((name, error)) => self.fail(step, error.reason, &format!("result {name}: {error}")),
        }
    }

    /// Stores the results, unless they are too large.
    pub(super) fn succeed(&mut self, step: StepIndex, results: Vec<StepResult>, write: WriteNeed) {
        if let Err(message) = size::fits(&self.live.run, step, &results) {
            self.change(step).results.clear();
            return self.fail(step, reason::RESULT_TOO_LARGE, &message);
        }
        let now = self.now;
        let state = self.change(step);
        state.phase = StepPhase::Succeeded;
        state.completion_time = Some(now);
        state.results = results;
        state.message.clear();
        state.reason.clear();
        state.resume_after = None;
        self.need(write);
    }

    fn results(
        &self,
        step: StepIndex,
        response: &Response,
    ) -> Result<Vec<StepResult>, (String, EvalError)> {
        let Action::Http(action) = &self.step(step).action else {
            return Ok(Vec::new());
        };
        let body = ParsedBody::new(&response.body);
        let mapped = action.result_mappings.iter().map(|(name, mapping)| {
            let value = mapping
                .extract(&body)
                .map_err(|error| (name.clone(), error))?;
            Ok(StepResult {
                name: name.clone(),
                value,
            })
        });
        mapped
            .chain(self.implicit(step, response).into_iter().map(Ok))
            .collect()
    }

    /// The implicit results that something refers to.
    fn implicit(&self, step: StepIndex, response: &Response) -> Vec<StepResult> {
        let value = |result: &ImplicitResult| match result {
            ImplicitResult::Status | ImplicitResult::StatusCode => response.status.to_string(),
            ImplicitResult::Body => String::from_utf8_lossy(&response.body).into_owned(),
        };
        let wanted = self.step(step).implicit_results.iter();
        wanted
            .map(|result| StepResult {
                name: result.name().to_owned(),
                value: value(result),
            })
            .collect()
    }

    /// What a failed call answered is there for those who ask, as far as it fits.
    fn keep_implicit_results(&mut self, step: StepIndex, response: &Response) {
        let results = self.implicit(step, response);
        if !results.is_empty() && size::fits(&self.live.run, step, &results).is_ok() {
            self.change(step).results = results;
        }
    }
}
