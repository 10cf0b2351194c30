//! A step succeeds, with its results.

use super::{Failed, Machine};
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
            let message = format!("the target answered HTTP {}", response.status);
            let failed = Failed {
                retry_after: retry::retry_after(&response.headers, self.now),
                results: self.implicit(step, response),
                ..Failed::new(reason::HTTP_STATUS, &message)
            };
            return self.attempt_failed(step, failed);
        }
        self.begin();
        self.live.memory[step].unsent = false;
        match self.results(step, response) {
            Ok(results) => self.succeed(step, results),
            Err((name, error)) => self.fail(step, error.reason, &format!("result {name}: {error}")),
        }
    }

    /// Stores the results, unless they are too large.
    pub(super) fn succeed(&mut self, step: StepIndex, results: Vec<StepResult>) {
        if let Err(message) = self.live.fits(step, &results) {
            return self.fail(step, reason::RESULT_TOO_LARGE, &message);
        }
        self.conclude(step, StepPhase::Succeeded, self.now);
        self.set_results(step, results);
        self.set_message(step, "");
        self.change(step).reason.clear();
        if !self.live.is_recomputable(self.flow, step) {
            self.need(WriteNeed::Soon);
        }
    }

    /// What a call that failed for good answered is there for those who ask, as far as it fits.
    pub(super) fn keep_results(&mut self, step: StepIndex, results: Vec<StepResult>) {
        let mut kept = Vec::new();
        for result in results {
            kept.push(result);
            if self.live.fits(step, &kept).is_err() {
                kept.pop();
            }
        }
        self.set_results(step, kept);
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
}
