//! What binding needs of a connection.

use crate::connection::Connection;
use iolite_base::Result;
use iolite_plan::bind::Env;

/// Runs `f` with what binding needs.
pub(crate) fn with_env<T>(conn: &Connection, f: impl FnOnce(&Env<'_>) -> Result<T>) -> Result<T> {
    let c = &conn.0;
    // Copies of handles, so that nothing of the connection is borrowed while names are looked up.
    let catalog = c.catalog.borrow().clone();
    let registry = c.registry.borrow().clone();
    let limits = c.limits.borrow().clone();
    let env = Env {
        catalog: &catalog,
        registry: &registry,
        limits: &limits,
        encoding: c.encoding(),
        quoted_strings: c.settings.double_quoted_strings(),
        connector: conn,
        full_column_names: c.settings.full_column_names(),
        short_column_names: c.settings.short_column_names(),
        automatic_index: c.settings.automatic_index(),
        triggers: c.settings.triggers(),
        views: c.settings.views(),
        trusted_schema: c.settings.trusted_schema(),
        recursive_triggers: c.settings.recursive_triggers(),
        foreign_keys: c.settings.foreign_keys() && !c.txn.is_nested(),
        defers_keys: c.txn.defer_foreign_keys().get(),
        key_actions: c.settings.key_actions(),
        ignore_checks: c.settings.ignore_checks(),
        writable_schema: c.settings.writable_schema() && !c.settings.defensive(),
        lookahead_filters: c.settings.lookahead_filters(),
        explained: false,
        own: c.txn.is_nested(),
        missing_collations: false,
        authorizer: None,
        virtual_tables: !c.no_virtual.get() || c.txn.is_nested(),
        protects_shadows: c.protects_shadows(),
        has_stack: iolite_os::has_stack,
        watch: None,
    };
    f(&env)
}
