//! What INSERT, UPDATE and DELETE do: `insert`, `update` and `delete` decide, `virtual_table` where the rows are a module's;
//! `tests` says what is asked of a new row, and in which order, `undo` whether a failing statement is undone by itself. What comes out is a [`crate::statement::modify::ModifyPlan`].

mod delete;
mod foreign_keys;
mod insert;
mod tests;
mod undo;
mod update;
mod virtual_table;
