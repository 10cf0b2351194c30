//! What all listing commands share: one namespace or all, an output format, paged lists.

use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::output::{self, Format};

/// How many objects a page holds.
const PAGE: u32 = 500;

/// Flags of every listing.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// All namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// The collection of one namespace, or of all.
pub(crate) fn api<K>(client: Client, all: bool, namespace: &str) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    if all {
        Api::all(client)
    } else {
        Api::namespaced(client, namespace)
    }
}

/// Every object of a collection, read in pages.
///
/// # Errors
/// As the API server answers.
pub(crate) async fn all<K>(api: &Api<K>) -> Result<Vec<K>, Failure>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list(&params).await?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(items),
        }
    }
}

/// Prints a list: structured as a plain array, or names, or the table that `row` makes.
///
/// # Errors
/// A value that cannot be printed.
pub(crate) fn print<K>(
    items: &[K],
    args: &ListArgs,
    headings: &[&str],
    row: impl Fn(&K) -> Vec<String>,
) -> Result<(), Failure>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    match args.output {
        Format::Json | Format::Yaml => output::structured(args.output, &items)?,
        Format::Name => {
            for item in items {
                output::line(format!(
                    "{}.{}/{}",
                    K::kind(&()).to_lowercase(),
                    K::group(&()),
                    item.name_any()
                ));
            }
        }
        Format::Table if items.is_empty() => output::complain("No resources found."),
        Format::Table => {
            let headings: Vec<_> = args
                .all_namespaces
                .then_some("NAMESPACE")
                .into_iter()
                .chain(headings.iter().copied())
                .collect();
            let rows = items.iter().map(|item| {
                let namespace = args
                    .all_namespaces
                    .then(|| item.namespace().unwrap_or_default());
                namespace.into_iter().chain(row(item)).collect()
            });
            output::table(&headings, rows);
        }
    }
    Ok(())
}

/// The status of the condition `Ready`, with its reason when it is not True.
pub(crate) fn ready(
    conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
) -> String {
    conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .map_or_else(
            || "Unknown".to_owned(),
            |condition| match condition.status.as_str() {
                "True" => "True".to_owned(),
                status => format!("{status} ({})", condition.reason),
            },
        )
}
