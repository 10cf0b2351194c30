//! The guard's verdicts, in every spelling.
