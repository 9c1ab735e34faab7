//! Integration tests, in one program because each program takes seconds to link.

mod align;
mod batches;
mod committee;
mod deviation;
mod holders;
mod own_key;
mod protocol;
mod randomness;
mod rogue_holder;
mod roster;
mod run;
mod squared_scores;
mod tables;
