//! What every connection knows by name: the functions and modules of the crates below, as one list.

use iolite_ext::{BuiltinModules, Builtins, Registry};

/// The modules.
pub const MODULES: BuiltinModules = BuiltinModules {
    named: |name| {
        (iolite_modules::BUILTIN.named)(name)
            .or_else(|| (iolite_fts::BUILTIN.named)(name))
            .or_else(|| (iolite_fts3::BUILTIN.named)(name))
            .or_else(|| (iolite_rtree::BUILTIN.named)(name))
            .or_else(|| (iolite_vector::BUILTIN.named)(name))
    },
    names: || {
        let mut names = (iolite_modules::BUILTIN.names)();
        names.extend((iolite_fts::BUILTIN.names)());
        names.extend((iolite_fts3::BUILTIN.names)());
        names.extend((iolite_rtree::BUILTIN.names)());
        names.extend((iolite_vector::BUILTIN.names)());
        names
    },
};

const FUNCTIONS: Builtins = Builtins {
    named: |name| {
        let mut found = (iolite_func::BUILTINS.named)(name);
        for more in [
            iolite_fts::functions_named,
            iolite_fts3::functions_named,
            iolite_rtree::functions_named,
            iolite_vector::functions_named,
        ] {
            if found.is_empty() {
                found = more(name);
            }
        }
        found
    },
    names: || {
        let mut names = (iolite_func::BUILTINS.names)();
        names.extend(iolite_fts::FUNCTION_NAMES);
        names.extend(iolite_fts3::FUNCTION_NAMES);
        names.extend(iolite_rtree::FUNCTION_NAMES);
        names.extend(iolite_vector::FUNCTION_NAMES);
        names
    },
};

/// A registry that knows the functions.
pub(crate) fn registry() -> Registry {
    Registry::new(FUNCTIONS)
}
