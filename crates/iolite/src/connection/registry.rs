//! The functions, collating sequences and modules of a connection.
//!
//! A change makes statements that may depend on it be prepared anew, and empties the list of kept programs.

use super::Connection;
use iolite_ext::{BuiltinModules, Function, Module, Registry};
use iolite_value::Collate;
use std::rc::Rc;

impl Connection {
    /// The connection as modules see it.
    pub fn host(&self) -> Rc<dyn iolite_ext::Host> {
        self.0.clone()
    }

    /// A module by its name.
    pub fn module(&self, name: &str) -> Option<Rc<dyn Module>> {
        self.0.registry.borrow().module(name)
    }

    /// Registers a function.
    pub fn create_function(&self, f: Function) {
        let replaces = self.has_function(&f.name, f.args);
        self.0.overridden.borrow_mut().push(f.name.to_ascii_lowercase());
        Rc::make_mut(&mut self.0.registry.borrow_mut()).add_function(f);
        // Programs kept by text may have another one; statements keep what they have unless it is replaced.
        self.0.plans.borrow_mut().clear();
        if replaces {
            self.0.expire_statements();
        }
    }

    /// Removes a function.
    pub fn remove_function(&self, name: &str, args: i16) {
        Rc::make_mut(&mut self.0.registry.borrow_mut()).remove_function(name, args);
        self.0.expire_statements();
    }

    /// Whether there is a function of this name for just this number of arguments, -1: any.
    pub fn has_function(&self, name: &str, args: i16) -> bool {
        self.0.registry.borrow().has_function_of(name, args)
    }

    /// Whether there is a collating sequence of this name.
    pub fn has_collation(&self, name: &str) -> bool {
        let registry = self.0.registry.borrow().clone();
        registry.collation_names().iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    /// Registers a collating sequence, or removes it.
    pub fn create_collation(&self, name: &str, c: Option<Rc<dyn Collate>>) {
        let replaces = self.has_collation(name);
        Rc::make_mut(&mut self.0.registry.borrow_mut()).set_collation(name, c);
        // Programs kept by text may have another one; statements keep what they have unless it is replaced.
        self.0.plans.borrow_mut().clear();
        if replaces {
            self.0.expire_statements();
        }
    }

    /// Takes a built-in collating sequence away.
    pub fn hide_collation(&self, name: &str) {
        Rc::make_mut(&mut self.0.registry.borrow_mut()).hide_collation(name);
        self.0.expire_statements();
    }

    /// Registers a virtual table module. Tables of a former one of this name stay what they are.
    pub fn create_module(&self, name: &str, m: Rc<dyn Module>) {
        self.change_modules(|r| r.add_module(name, m));
    }

    /// Removes a virtual table module that was registered.
    pub fn remove_module(&self, name: &str) {
        self.change_modules(|r| r.remove_module(name));
    }

    /// Removes the virtual table modules that are not in the list.
    pub fn retain_modules(&self, keep: &[String]) {
        self.change_modules(|r| r.retain_modules(keep));
    }

    /// Sets the modules that are there without being registered.
    pub fn set_builtin_modules(&self, modules: BuiltinModules) {
        Rc::make_mut(&mut self.0.registry.borrow_mut()).set_builtin_modules(modules);
    }

    /// Makes a change, which answers the modules that are gone.
    fn change_modules<T>(&self, f: impl FnOnce(&mut Registry) -> T) {
        let gone = f(Rc::make_mut(&mut self.0.registry.borrow_mut()));
        // What is prepared keeps the modules that it was prepared with.
        self.0.plans.borrow_mut().clear();
        self.0.sweep_virtual();
        // They run code of their own now: nothing is borrowed.
        drop(gone);
    }

    /// Disconnects all virtual tables, as if all that they do in a transaction were taken back. Those that are used after all
    /// are connected anew.
    pub fn forget_virtual_tables(&self) {
        self.0.forget_virtual();
    }

    /// Whether statements that functions and modules run fail with primary codes, as in SQLite where the program has not asked for
    /// extended ones.
    pub fn set_primary_codes(&self, on: bool) {
        self.0.primary_codes.set(on);
    }

    /// Runs `f`, during which statements that name virtual tables are not compiled.
    pub fn without_virtual_tables<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = self.0.no_virtual.replace(true);
        let out = f();
        self.0.no_virtual.set(before);
        out
    }
}
