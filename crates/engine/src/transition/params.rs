//! Parameters get their values when the run begins: from the run, the event's body, or the default.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Machine;
use crate::event::Body;
use crate::expression::value::text_of;
use crate::expression::{Reference, Target, Template};
use crate::flow::Param;
use crate::run::{RunPhase, reason};

impl Machine<'_> {
    /// Resolves the parameters once; ends the run, and says false, when one of them has no value.
    pub(super) fn resolve_params(&mut self) -> bool {
        if self.live.params.is_some() {
            return true;
        }
        let body = Body::of(&self.spec.event);
        let mut values = BTreeMap::new();
        for param in &self.flow.params {
            match self.value(param, &body) {
                Ok(value) => values.insert(param.name.clone(), value),
                Err((why, message)) => {
                    self.end(
                        RunPhase::Failed,
                        why,
                        format!("parameter {}: {message}", param.name),
                    );
                    return false;
                }
            };
        }
        self.live.params = Some(Arc::new(values));
        true
    }

    fn value(&self, param: &Param, body: &Body) -> Result<String, (&'static str, String)> {
        if let Some(given) = self.spec.params.get(&param.name) {
            // What an event brought is literal; what a person wrote is a template.
            return if self.spec.trigger.is_some() {
                Ok(given.clone())
            } else {
                self.expand(given)
            };
        }
        let fields = body.fields().and_then(|fields| fields.as_object());
        if let Some(field) = fields.and_then(|fields| fields.get(&param.name))
            && !field.is_null()
        {
            return Ok(text_of(field).into_owned());
        }
        match &param.default {
            Some(default) => Ok(default.clone()),
            None if param.required => Err((
                reason::PARAM_MISSING,
                "is required, and neither the run's params nor the event's body give it a value"
                    .to_owned(),
            )),
            None => Ok(String::new()),
        }
    }

    fn expand(&self, text: &str) -> Result<String, (&'static str, String)> {
        let template = Template::parse(text, Target::Text)
            .map_err(|error| (reason::EVAL_ERROR, error.message))?;
        if template
            .references()
            .iter()
            .any(|reference| !matches!(reference, Reference::Trigger(_) | Reference::Run(_)))
        {
            return Err((
                reason::EVAL_ERROR,
                "may refer to trigger and run only".to_owned(),
            ));
        }
        template
            .render_text(&self.run_scope())
            .map_err(|error| (error.reason, error.message))
    }
}
