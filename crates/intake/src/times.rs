pub(crate) mod candidates;
