//! Room on the stack for code that recurses over what a user wrote.

/// Runs `work` with at least `need` bytes of stack, on a new stack when the current one is smaller.
///
/// Where stacks cannot be switched (wasm) it runs on the current one; the bounds on size and depth still hold.
pub(crate) fn with_stack<R>(need: usize, work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(need, need.max(1 << 20), work)
}
