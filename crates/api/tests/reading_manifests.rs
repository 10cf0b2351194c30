//! The lines of "Reading manifests" and "Names" in the compatibility promise that concern the kinds, a test each.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

use kubezap_api::conditions::{self, reason};
use kubezap_api::lower::{self, Auth};
use kubezap_api::{Flow, FlowRun, Integration, Trigger, WebhookGatewayConfig, crds, duration};
use kubezap_engine::event::Source;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn read<K: DeserializeOwned>(kind: &str, spec: &str) -> K {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    serde_json::from_value(serde_json::json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "sample", "namespace": "shop"},
        "spec": spec,
    }))
    .unwrap()
}

fn trigger(spec: &str) -> Trigger {
    read("Trigger", spec)
}

fn flow(spec: &str) -> Flow {
    read("Flow", spec)
}

fn run(spec: &str) -> FlowRun {
    read("FlowRun", spec)
}

fn integration(spec: &str) -> Integration {
    read("Integration", spec)
}

fn paths(problems: &[kubezap_engine::flow::Problem]) -> Vec<&str> {
    problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect()
}

/// A schema inside a kind's, by a JSON pointer that leaves `/properties` out.
fn schema_at(kind: &str, path: &str) -> Value {
    let crd = crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    let schema = crd.spec.versions[0].schema.clone().unwrap();
    let schema = serde_json::to_value(schema.open_api_v3_schema).unwrap();
    path.split('.').fold(schema, |schema, name| match name {
        "[]" => schema["items"].clone(),
        name => schema["properties"][name].clone(),
    })
}

#[test]
fn a_type_requires_the_object_of_its_name() {
    for (kind, path) in [
        ("Trigger", "spec"),
        ("Trigger", "spec.webhook.auth"),
        ("Trigger", "spec.action"),
        ("Flow", "spec.steps.[].action"),
        ("Integration", "spec"),
        ("Integration", "spec.http.auth"),
    ] {
        let schema = schema_at(kind, path);
        let rules = schema["x-kubernetes-validations"].as_array().unwrap();
        for word in schema["properties"]["type"]["enum"].as_array().unwrap() {
            let word = word.as_str().unwrap();
            let block = if word == "header-equals" {
                "headerEquals"
            } else {
                word
            };
            assert!(
                rules.iter().any(|rule| rule["rule"]
                    == format!("self.type != '{word}' || has(self.{block})")
                    && rule["fieldPath"] == format!(".{block}")
                    && rule["message"] == format!("type {word} needs this block")),
                "{kind} {path} {word}"
            );
        }
    }
}

#[test]
fn other_blocks_beside_a_type_are_accepted_ignored_and_reported() {
    let lowered = lower::trigger(&trigger(
        "type: webhook\n\
         webhook: {path: orders, auth: {type: bearer, bearer: {tokenSecretRef: {name: t, key: k}}, oidc: {issuer: 'https://i'}}}\n\
         cron: {schedule: '* * * * *'}\n\
         flowRef: {name: orders}",
    ));
    assert!(lowered.webhook.is_some());
    assert_eq!(
        paths(&lowered.unused),
        ["spec.cron", "spec.webhook.auth.oidc"]
    );
    let degraded = lowered.degraded().unwrap();
    assert_eq!(degraded.reason, reason::UNUSED_BLOCK);
    assert_eq!(
        degraded.message,
        "spec.cron: has no effect beside webhook, which type names; \
         spec.webhook.auth.oidc: has no effect beside bearer, which type names"
    );

    let lowered = lower::flow(
        "sample",
        &flow(
            "steps:\n- name: pause\n  action: {type: wait, wait: {duration: 1s}, http: {url: 'https://x'}}",
        )
        .spec,
    );
    assert!(lowered.flow.is_ok());
    assert_eq!(paths(&lowered.unused), ["spec.steps[0].action.http"]);
}

#[test]
fn hooks_is_put_before_any_webhook_path_that_lacks_it() {
    for (path, served) in [
        ("orders", "/hooks/orders"),
        ("/orders", "/hooks/orders"),
        ("/hooks/orders", "/hooks/orders"),
        ("hooks/orders", "/hooks/orders"),
        ("/hooksorders", "/hooks/hooksorders"),
        ("/orders/", "/hooks/orders/"),
        ("/a/b", "/hooks/a/b"),
        ("/", "/hooks/"),
        ("/hooks", "/hooks"),
    ] {
        assert_eq!(lower::hook_path(path), served);
    }
}

#[test]
fn the_field_event_of_a_trigger_is_accepted_without_effect() {
    let with =
        trigger("type: webhook\nevent: push\nwebhook: {path: orders}\nflowRef: {name: orders}");
    assert_eq!(with.spec.event.as_deref(), Some("push"));
    let lowered = lower::trigger(&with);
    assert!(lowered.webhook.is_some());
    assert_eq!(lowered.degraded(), None);
}

#[test]
fn optional_is_accepted_on_every_key_reference() {
    let lowered = lower::trigger(&trigger(
        "type: webhook\n\
         webhook: {path: orders, auth: {type: hmac, hmac: {secretRef: {name: s, key: k, optional: true}}}}\n\
         flowRef: {name: orders}",
    ));
    assert!(matches!(
        lowered.webhook.unwrap().auth,
        Auth::HmacGithub { .. }
    ));
    for (kind, path) in [
        ("Integration", "spec.kafka.tls.caSecretRef"),
        ("Integration", "spec.nats.credentialsSecretRef"),
        ("Integration", "spec.http.auth.bearer.tokenSecretRef"),
        ("Integration", "spec.http.tls.caBundleConfigMapRef"),
        ("Trigger", "spec.webhook.auth.apiKey.secretRef"),
    ] {
        assert_eq!(
            schema_at(kind, path)["properties"]["optional"]["type"],
            "boolean",
            "{path}"
        );
    }
}

#[test]
fn a_client_ca_without_a_server_certificate_is_not_refused() {
    let config: WebhookGatewayConfig = read(
        "WebhookGatewayConfig",
        "tls: {clientCASecretRef: {name: ca}}",
    );
    assert_eq!(config.spec.tls.unwrap().server_secret_ref, None);
    let schema = schema_at("WebhookGatewayConfig", "spec.tls");
    assert_eq!(schema.get("x-kubernetes-validations"), None);
}

#[test]
fn undeclared_params_of_a_run_are_taken_in() {
    let object = lower::run_object(&run(
        "flowRef: {name: orders}\nparams: [{name: unheard-of, value: '1'}, {name: x.y, value: '2'}]",
    ));
    assert_eq!(object.spec.params["unheard-of"], "1");
    assert_eq!(object.spec.params["x.y"], "2");
}

#[test]
fn an_http_url_may_be_empty_with_an_integration() {
    let with =
        flow("steps:\n- name: call\n  action: {type: http, http: {integrationRef: {name: crm}}}");
    let lowered = lower::flow("sample", &with.spec);
    assert_eq!(
        paths(&lowered.not_supported),
        ["spec.steps[0].action.http.integrationRef"]
    );
    assert_eq!(lowered.flow.unwrap_err(), []);
}

#[test]
fn runs_without_labels_or_owner_and_with_long_names_are_taken_in() {
    let mut bare = run("flowRef: {name: orders}\ntriggerRef: {name: sqs, type: plugin}");
    bare.metadata.name = Some("x".repeat(253));
    let object = lower::run_object(&bare);
    assert_eq!(object.slot, None);
    assert_eq!(object.spec.name.len(), 253);
    assert_eq!(object.spec.event.source, Source::Plugin);
    assert_eq!(object.status, None);
}

#[test]
fn tls_of_kafka_is_on_of_amqp_off_and_nats_has_no_switch() {
    let kafka = integration("type: kafka\nkafka: {bootstrapServers: [k], tls: {}}");
    assert!(kafka.spec.kafka.unwrap().tls.unwrap().enabled);
    let amqp = integration("type: amqp\namqp: {url: 'amqp://a', tls: {}}");
    assert!(!amqp.spec.amqp.unwrap().tls.unwrap().enabled);
    assert_eq!(
        schema_at("Integration", "spec.nats.tls")["properties"].get("enabled"),
        None
    );
}

#[test]
fn a_time_to_live_of_zero_needs_no_unit() {
    assert!(duration::parse("0").unwrap().is_zero());
    assert!(duration::parse("0s").unwrap().is_zero());
    let object = run("flowRef: {name: orders}\nttlAfterFinished: '0'");
    assert_eq!(
        paths(&lower::flow_run_degraded(&object.spec)),
        ["spec.ttlAfterFinished"]
    );
}

#[test]
fn env_of_a_plugin_is_the_core_type_with_value_from() {
    let env = "type: plugin\n\
         plugin:\n\
        \x20 image: registry.example.com/plugin\n\
        \x20 env:\n\
        \x20 - {name: A, value: '1'}\n\
        \x20 - {name: B, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}\n\
        \x20 - {name: C, valueFrom: {configMapKeyRef: {name: c, key: k}}}\n\
        \x20 - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n\
        \x20 - {name: E, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}\n\
        \x20 - {name: F, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1, containerName: c}}}\n";
    let plugin = integration(env).spec.plugin.unwrap();
    let ours = serde_json::to_value(&plugin.env).unwrap();
    let core: Vec<k8s_openapi::api::core::v1::EnvVar> = plugin
        .env
        .iter()
        .map(|var| {
            let mut var = serde_json::to_value(var).unwrap();
            // A Quantity is text; the API server takes a number too.
            if let Some(divisor) = var.pointer_mut("/valueFrom/resourceFieldRef/divisor")
                && divisor.is_number()
            {
                *divisor = divisor.to_string().into();
            }
            serde_json::from_value(var).unwrap()
        })
        .collect();
    assert_eq!(core.len(), 6);
    assert_eq!(
        ours[3]["valueFrom"]["fieldRef"]["fieldPath"],
        "metadata.name"
    );
}

#[test]
fn mtls_of_a_plugin_is_off_unless_enabled() {
    let plugin = integration("type: plugin\nplugin: {image: i, mtls: {}}")
        .spec
        .plugin
        .unwrap();
    assert!(!plugin.mtls.unwrap().enabled);
    assert_eq!(plugin.publisher_port, 8090);
}

#[test]
fn an_amqp_trigger_may_name_an_exchange_of_any_type() {
    for kind in ["direct", "topic", "fanout", "headers"] {
        let spec = format!(
            "type: amqp\namqp: {{integrationRef: {{name: r}}, topic: q, routingKey: 'a.#', exchange: {{name: e, type: {kind}}}}}\nflowRef: {{name: orders}}"
        );
        let amqp = trigger(&spec).spec.amqp.unwrap();
        assert_eq!(serde_json::to_value(amqp.exchange).unwrap()["type"], kind);
    }
}

#[test]
fn a_kafka_trigger_may_say_where_a_new_group_starts() {
    for (given, policy) in [
        ("", "latest"),
        (", offsetResetPolicy: earliest", "earliest"),
    ] {
        let spec = format!(
            "type: kafka\nkafka: {{integrationRef: {{name: k}}, topic: t{given}}}\nflowRef: {{name: orders}}"
        );
        let kafka = serde_json::to_value(trigger(&spec).spec.kafka).unwrap();
        assert_eq!(kafka["offsetResetPolicy"], policy);
    }
    let group = integration("type: kafka\nkafka: {bootstrapServers: [k]}")
        .spec
        .kafka
        .unwrap();
    assert_eq!(group.consumer_group_prefix, "kubezap");
}

#[test]
fn a_gateway_may_name_a_revocation_list() {
    let config: WebhookGatewayConfig = read(
        "WebhookGatewayConfig",
        "tls: {serverSecretRef: {name: s}, crlConfigMapRef: {name: crl}}",
    );
    assert_eq!(
        config.spec.tls.unwrap().crl_config_map_ref.unwrap().name,
        "crl"
    );
}

#[test]
fn tls_annotations_of_a_trigger_count_for_its_action() {
    let mut with_action = trigger(
        "type: webhook\nwebhook: {path: orders}\naction: {type: webhook, webhook: {url: 'https://example.com'}}",
    );
    let mut with_flow = trigger("type: webhook\nwebhook: {path: orders}\nflowRef: {name: orders}");
    for annotated in [&mut with_action, &mut with_flow] {
        annotated.metadata.annotations = Some(
            [
                ("kubezap.io/tls-ca-secret", "ca"),
                ("kubezap.io/tls-client-cert-secret", "client"),
                ("kubezap.io/tls-insecure-skip-verify", "true"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        );
    }
    let ca = "metadata.annotations[kubezap.io/tls-ca-secret]";
    let client = "metadata.annotations[kubezap.io/tls-client-cert-secret]";
    let skip = "metadata.annotations[kubezap.io/tls-insecure-skip-verify]";
    let lowered = lower::trigger(&with_action);
    assert_eq!(paths(&lowered.not_supported), [ca, client]);
    assert_eq!(paths(&lowered.degraded), [skip]);
    assert_eq!(lowered.webhook, None);
    let lowered = lower::trigger(&with_flow);
    assert_eq!(paths(&lowered.not_supported), [""; 0]);
    assert_eq!(paths(&lowered.degraded), [ca, client, skip]);
    assert!(lowered.webhook.is_some());
}

#[test]
fn schedules_of_cron_are_taken_in_as_text() {
    for schedule in [
        "@midnight",
        "@annually",
        "CRON_TZ=Europe/Berlin 0 6 * * *",
        "TZ=UTC @daily",
    ] {
        let spec =
            format!("type: cron\ncron: {{schedule: '{schedule}'}}\nflowRef: {{name: orders}}");
        let cron = trigger(&spec).spec.cron.unwrap();
        assert_eq!(
            (cron.schedule.as_str(), cron.timezone.as_str()),
            (schedule, "UTC")
        );
    }
}

#[test]
fn sources_of_trigger_data_are_the_words_of_the_promise() {
    for source in [
        "webhook",
        "cron",
        "kafka",
        "kubernetes-event",
        "plugin",
        "amqp",
        "nats",
        "manual",
    ] {
        let object = run(&format!(
            "flowRef: {{name: orders}}\ntriggerData: {{source: {source}}}"
        ));
        let event = lower::event(object.spec.trigger_data.as_ref().unwrap());
        assert_eq!(event.source.as_str(), source);
        assert_eq!(lower::trigger_data(&event).source.as_deref(), Some(source));
    }
}

#[test]
fn conditions_and_reasons_have_their_names() {
    assert_eq!(
        [
            conditions::READY,
            conditions::ACCEPTED,
            conditions::PLUGIN_INTEGRATION_INVALID,
            conditions::CREDENTIAL_RESOLUTION_FAILED,
            reason::TRIGGER_READY,
            reason::NO_TLS_CONFIGURED,
            reason::WEBHOOK_GATEWAY_CONFIG_READY,
            reason::SERVER_SECRET_NOT_FOUND,
            reason::SERVER_SECRET_MISSING_KEYS,
            reason::CLIENT_CA_SECRET_NOT_FOUND,
            reason::CLIENT_CA_SECRET_MISSING_KEY,
        ],
        [
            "Ready",
            "Accepted",
            "PluginIntegrationInvalid",
            "CredentialResolutionFailed",
            "TriggerReady",
            "NoTLSConfigured",
            "WebhookGatewayConfigReady",
            "ServerSecretNotFound",
            "ServerSecretMissingKeys",
            "ClientCASecretNotFound",
            "ClientCASecretMissingKey",
        ]
    );
}

#[test]
fn a_paused_trigger_has_no_route() {
    let paused =
        trigger("type: webhook\nenabled: false\nwebhook: {path: orders}\nflowRef: {name: orders}");
    let lowered = lower::trigger(&paused);
    assert_eq!(lowered.webhook, None);
    assert_eq!(lowered.problems, []);
}

#[test]
fn what_github_sends_may_be_spelled_out() {
    let spelled = |header: &str, algorithm: &str, prefix: &str| {
        lower::trigger(&trigger(&format!(
            "type: webhook\n\
             webhook: {{path: orders, auth: {{type: hmac, hmac: {{secretRef: {{name: s, key: k}}, header: {header}, algorithm: {algorithm}, prefix: '{prefix}'}}}}}}\n\
             flowRef: {{name: orders}}"
        )))
    };
    assert!(
        spelled("x-hub-signature-256", "sha256", "sha256=")
            .webhook
            .is_some()
    );
    let other = spelled("X-Signature", "sha1", "v0=");
    assert_eq!(other.webhook, None);
    assert_eq!(
        other.ready().message,
        "spec.webhook.auth.hmac.header: only X-Hub-Signature-256 is supported for the provider github; \
         spec.webhook.auth.hmac.algorithm: only sha256 is supported for the provider github; \
         spec.webhook.auth.hmac.prefix: only sha256= is supported for the provider github"
    );
}
