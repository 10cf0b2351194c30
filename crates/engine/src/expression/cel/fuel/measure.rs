//! How large a value is, for its price.

use ::cel::common::types::{CelBytes, CelOptional, CelString, Kind};
use ::cel::common::value::Val;

/// What every value costs beside its text.
const NODE: usize = 16;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Everything that reading the value may visit.
    Read,
    /// Everything that copying it allocates: text that is borrowed from the scope is not copied.
    Copy,
}

/// The size of a value in bytes; stops counting a little beyond `limit`.
pub(super) fn measure(value: &dyn Val, how: Measure, limit: usize) -> usize {
    let mut size = 0;
    add(value, how, limit, &mut size);
    size
}

fn add(value: &dyn Val, how: Measure, limit: usize, size: &mut usize) {
    *size = size.saturating_add(NODE);
    if *size > limit {
        return;
    }
    match value.get_type().kind() {
        Kind::String => {
            if let Some(text) = value.downcast_ref::<CelString<'_>>()
                && (how == Measure::Read || text.as_borrowed().is_none())
            {
                *size = size.saturating_add(text.inner().len());
            }
        }
        Kind::Bytes => {
            if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>()
                && (how == Measure::Read || bytes.as_borrowed().is_none())
            {
                *size = size.saturating_add(bytes.inner().len());
            }
        }
        Kind::List => {
            let Some(list) = value.as_iterable() else {
                return;
            };
            let mut items = list.iter();
            while let Some(item) = items.next() {
                add(item, how, limit, size);
                if *size > limit {
                    return;
                }
            }
        }
        Kind::Map => {
            let (Some(keys), Some(map)) = (value.as_iterable(), value.as_indexer()) else {
                return;
            };
            let mut keys = keys.iter();
            while let Some(key) = keys.next() {
                add(key, how, limit, size);
                if let Ok(value) = map.get(key) {
                    add(value.as_ref(), how, limit, size);
                }
                if *size > limit {
                    return;
                }
            }
        }
        _ => {
            if let Some(value) = value
                .downcast_ref::<CelOptional<'_>>()
                .and_then(|optional| optional.option())
            {
                add(value, how, limit, size);
            }
        }
    }
}

/// How many bytes (of text) or elements (of a list or map) a value has, contents not counted.
pub(super) fn produced(value: &dyn Val) -> usize {
    match value.get_type().kind() {
        Kind::String => value
            .downcast_ref::<CelString<'_>>()
            .map_or(0, |text| text.inner().len()),
        Kind::Bytes => value
            .downcast_ref::<CelBytes<'_>>()
            .map_or(0, |bytes| bytes.inner().len()),
        Kind::List | Kind::Map => value.as_sizer().map_or(0, |sizer| {
            usize::try_from(*sizer.size().inner()).unwrap_or(0)
        }),
        _ => 0,
    }
}
