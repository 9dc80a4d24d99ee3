//! SQL functions of the shell: `readfile`, `writefile`.

use iolite::engine::{Connection, Context, Function, FunctionFlags, Implementation, Result, Value};

/// Adds them to a connection.
pub fn register(c: &Connection) {
    let f = |name: &str, args, imp| Function {
        name: name.into(),
        args,
        flags: FunctionFlags::DIRECT_ONLY,
        imp: Implementation::Scalar(imp),
    };
    c.create_function(f("readfile", 1, read_file));
    c.create_function(f("writefile", 2, write_file));
}

fn read_file(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    match std::fs::read(args[0].to_string_lossy()) {
        Ok(b) => Value::blob(&b),
        Err(_) => Ok(Value::Null),
    }
}

fn write_file(_: &mut Context<'_>, args: &[Value]) -> Result<Value> {
    let bytes = args[1].text_bytes()?;
    match std::fs::write(args[0].to_string_lossy(), &*bytes) {
        Ok(()) => Ok(Value::Int(bytes.len() as i64)),
        Err(_) => Ok(Value::Null),
    }
}
