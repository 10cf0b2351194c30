//! A map whose keys are looked up in a folded form: headers without case, steps with underscores for hyphens.

use std::collections::BTreeMap;

use ::cel::ExecutionError;
use ::cel::common::traits::{self, Container, Indexer, Iterable, Sizer};
use ::cel::common::types::{CelInt, CelMap, CelString, MAP_TYPE, Type};
use ::cel::common::value::{CowVal, Val};

/// How a key is folded before it is looked up.
pub(super) type Fold = fn(&str) -> String;

/// A CEL map with text keys. Iteration gives the keys as they were put in, in the order of their folded forms.
#[derive(Debug)]
pub(super) struct FoldedMap<'v> {
    fold: Fold,
    entries: BTreeMap<String, Entry<'v>>,
}

#[derive(Debug)]
struct Entry<'v> {
    key: CelString<'v>,
    value: Box<dyn Val + 'v>,
}

impl<'v> FoldedMap<'v> {
    pub(super) fn new(
        fold: Fold,
        entries: impl IntoIterator<Item = (&'v str, Box<dyn Val + 'v>)>,
    ) -> Self {
        Self {
            fold,
            entries: entries
                .into_iter()
                .map(|(key, value)| {
                    let entry = Entry {
                        key: CelString::from(key),
                        value,
                    };
                    (fold(key), entry)
                })
                .collect(),
        }
    }

    fn find(&self, key: &dyn Val) -> Result<Option<&Entry<'v>>, ExecutionError> {
        match key.downcast_ref::<CelString<'_>>() {
            Some(key) => Ok(self.entries.get(&(self.fold)(key.inner()))),
            None => Err(ExecutionError::UnexpectedType {
                got: key.get_type().name().to_owned(),
                want: "string".to_owned(),
            }),
        }
    }
}

impl Clone for FoldedMap<'_> {
    fn clone(&self) -> Self {
        Self {
            fold: self.fold,
            entries: self
                .entries
                .iter()
                .map(|(folded, entry)| {
                    let entry = Entry {
                        key: entry.key.clone(),
                        value: entry.value.clone(),
                    };
                    (folded.clone(), entry)
                })
                .collect(),
        }
    }
}

impl Val for FoldedMap<'_> {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<CelMap<'_>>().is_some_and(|other| {
            self.entries.len() == other.inner().len()
                && self.entries.values().all(|entry| {
                    other
                        .as_indexer()
                        .and_then(|other| other.get(&entry.key).ok())
                        .is_some_and(|value| entry.value.equals(value.as_ref()))
                })
        })
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }
}

impl Container for FoldedMap<'_> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.find(key)?.is_some())
    }
}

impl Indexer for FoldedMap<'_> {
    fn get<'b, 'w>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        match self.find(key)? {
            Some(entry) => Ok(CowVal::Borrowed(entry.value.as_ref())),
            None => Err(no_such_key(key)),
        }
    }

    fn steal<'w>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'w>, ExecutionError>
    where
        Self: 'w,
    {
        match self.find(key)? {
            Some(entry) => Ok(entry.value.clone()),
            None => Err(no_such_key(key)),
        }
    }
}

fn no_such_key(key: &dyn Val) -> ExecutionError {
    ExecutionError::no_such_key(
        key.downcast_ref::<CelString<'_>>()
            .map_or("", CelString::inner),
    )
}

impl Iterable for FoldedMap<'_> {
    fn iter<'b, 'w>(&'b self) -> Box<dyn traits::Iterator<'b, 'w> + 'b>
    where
        Self: 'w,
    {
        Box::new(Keys(self.entries.values()))
    }
}

struct Keys<'b, 'v>(std::collections::btree_map::Values<'b, String, Entry<'v>>);

impl<'b, 'w, 'v: 'w> traits::Iterator<'b, 'w> for Keys<'b, 'v> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'w)> {
        self.0.next().map(|entry| &entry.key as &(dyn Val + 'w))
    }
}

impl Sizer for FoldedMap<'_> {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.entries.len()).unwrap_or(i64::MAX))
    }
}
