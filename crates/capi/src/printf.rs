//! `sqlite3_mprintf` and its family.
//!
//! A format is read once to learn which arguments it takes; they are fetched from C's argument list as values, and the
//! SQL function `printf` does the formatting. The argument list is read by the rules of the System V ABI for x86-64;
//! on other machines only the functions without `...` exist.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// The longest result.
const MOST: usize = 1_000_000_000;

/// What a `sqlite3_str*` points at.
pub struct Str {
    text: Vec<u8>,
    /// The longest text.
    most: usize,
    /// Why nothing more is taken: too much, or no memory.
    failed: c_int,
}

/// C's `va_list` on x86-64 with the System V ABI.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
pub struct Arguments {
    gp_offset: u32,
    fp_offset: u32,
    overflow: *mut u8,
    saved: *mut u8,
}

#[cfg(target_arch = "x86_64")]
mod variadic {
    use super::*;
    use iolite::engine::Value;

    impl Arguments {
        unsafe fn word(&mut self) -> u64 {
            if self.gp_offset < 48 {
                let p = self.saved.add(self.gp_offset as usize);
                self.gp_offset += 8;
                return *(p as *const u64);
            }
            self.stacked()
        }

        unsafe fn double(&mut self) -> f64 {
            if self.fp_offset < 176 {
                let p = self.saved.add(self.fp_offset as usize);
                self.fp_offset += 16;
                return *(p as *const f64);
            }
            f64::from_bits(self.stacked())
        }

        unsafe fn stacked(&mut self) -> u64 {
            let p = self.overflow as *const u64;
            self.overflow = self.overflow.add(8);
            *p
        }
    }

    /// Formats as C's caller asks.
    pub(crate) unsafe fn format(format: *const c_char, args: &mut Arguments) -> Vec<u8> {
        if format.is_null() {
            return Vec::new();
        }
        let f = std::ffi::CStr::from_ptr(format).to_bytes();
        let (mut out, mut values) = (Vec::with_capacity(f.len()), Vec::new());
        let mut i = 0;
        while let Some(c) = f.get(i) {
            i += 1;
            out.push(*c);
            if *c != b'%' {
                continue;
            }
            let (mut long, mut characters, mut precision) = (false, false, None);
            while let Some(c) = f.get(i) {
                i += 1;
                match c {
                    b'l' => long = true,
                    b'*' => {
                        let n = args.word() as i32;
                        if out.last() == Some(&b'.') {
                            precision = Some(n.unsigned_abs() as usize);
                            out.extend_from_slice(n.unsigned_abs().to_string().as_bytes());
                        } else {
                            out.extend_from_slice(n.to_string().as_bytes());
                        }
                    }
                    b'0'..=b'9' | b'-' | b'+' | b' ' | b'#' | b'!' | b',' | b'.' => {
                        if *c == b'.' {
                            let digits = f[i..].iter().take_while(|d| d.is_ascii_digit());
                            precision = Some(digits.fold(0usize, |n, d| {
                                n.saturating_mul(10).saturating_add((d - b'0') as usize)
                            }));
                        }
                        characters |= *c == b'!';
                        out.push(*c);
                    }
                    b'%' => {
                        out.push(b'%');
                        break;
                    }
                    b'n' => {
                        // How much is written so far is not told.
                        out.truncate(out.iter().rposition(|c| *c == b'%').unwrap_or(0));
                        args.word();
                        break;
                    }
                    b'f' | b'e' | b'E' | b'g' | b'G' => {
                        let v = args.double();
                        if v.is_nan() {
                            let start = out.iter().rposition(|c| *c == b'%').unwrap_or(0);
                            let (spec, text) = no_number(&out[start..]);
                            out.splice(start.., spec);
                            values.push(Value::text(text).unwrap_or_default());
                        } else {
                            out.push(*c);
                            values.push(Value::real(v));
                        }
                        break;
                    }
                    _ => {
                        out.push(if *c == b'z' { b's' } else { *c });
                        values.push(argument(*c, long, characters, precision, args));
                        break;
                    }
                }
            }
        }
        iolite_func::printf::format(&out, &values, MOST).ok().flatten().unwrap_or_default()
    }

    /// How what is no number is written: a substitution of a text with the width of `spec`, and that text.
    fn no_number(spec: &[u8]) -> (Vec<u8>, &'static [u8]) {
        let flags = spec[1..].iter().take_while(|c| !matches!(c, b'1'..=b'9' | b'.')).count() + 1;
        let mut to = vec![b'%'];
        if spec[..flags].contains(&b'-') {
            to.push(b'-');
        }
        to.extend(spec[flags..].iter().take_while(|c| c.is_ascii_digit()));
        to.push(b's');
        (to, if spec[..flags].contains(&b'0') { b"null" } else { b"NaN" })
    }

    unsafe fn argument(
        kind: u8,
        long: bool,
        characters: bool,
        precision: Option<usize>,
        args: &mut Arguments,
    ) -> Value {
        match kind {
            b'd' | b'i' if long => Value::Int(args.word() as i64),
            b'd' | b'i' | b'r' => Value::Int(args.word() as i32 as i64),
            b'u' | b'x' | b'X' | b'o' if !long => Value::Int(args.word() as u32 as i64),
            b'u' | b'x' | b'X' | b'o' | b'p' => Value::Int(args.word() as i64),
            b'c' => {
                let c = char::from_u32(args.word() as u32).unwrap_or('\u{fffd}');
                Value::text(c.encode_utf8(&mut [0; 4]).as_bytes()).unwrap_or_default()
            }
            b's' | b'z' | b'q' | b'Q' | b'w' => {
                let p = args.word() as *const c_char;
                if p.is_null() {
                    return Value::Null;
                }
                // With a precision the text need not end with NUL.
                let n = precision.map_or_else(
                    || libc::strlen(p),
                    |n| {
                        let n = if characters { n.saturating_mul(4) } else { n };
                        libc::strnlen(p, n)
                    },
                );
                let v = Value::text(std::slice::from_raw_parts(p as *const u8, n)).unwrap_or_default();
                if kind == b'z' {
                    crate::memory::sqlite3_free(p as *mut c_void);
                }
                v
            }
            _ => Value::Null,
        }
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn sqlite3_vmprintf(f: *const c_char, args: *mut Arguments) -> *mut c_char {
        crate::guard(null_mut(), || crate::memory::copy_out(&format(f, &mut *args)))
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn sqlite3_vsnprintf(
        n: c_int,
        to: *mut c_char,
        f: *const c_char,
        args: *mut Arguments,
    ) -> *mut c_char {
        if n <= 0 || to.is_null() {
            return to;
        }
        let text = crate::guard(Vec::new(), || format(f, &mut *args));
        let len = text.len().min(n as usize - 1);
        std::ptr::copy_nonoverlapping(text.as_ptr(), to as *mut u8, len);
        *to.add(len) = 0;
        to
    }

    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn sqlite3_str_vappendf(s: *mut Str, f: *const c_char, args: *mut Arguments) {
        if let Some(s) = s.as_mut() {
            let text = crate::guard(Vec::new(), || format(f, &mut *args));
            s.append(&text);
        }
    }

    /// A function with `...`: saves the registers that arguments come in, describes them as a `va_list` and calls the
    /// function that takes one. `$named` is the number of bytes of named arguments, `$last` the register for the list.
    macro_rules! trampoline {
        ($name:ident, $to:ident, $named:literal, $last:literal) => {
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                // 216 bytes keep the stack aligned: 24 for the list, 176 for registers from 32 on.
                core::arch::naked_asm!(
                    "sub rsp, 216",
                    "mov [rsp + 32], rdi",
                    "mov [rsp + 40], rsi",
                    "mov [rsp + 48], rdx",
                    "mov [rsp + 56], rcx",
                    "mov [rsp + 64], r8",
                    "mov [rsp + 72], r9",
                    "movups [rsp + 80], xmm0",
                    "movups [rsp + 96], xmm1",
                    "movups [rsp + 112], xmm2",
                    "movups [rsp + 128], xmm3",
                    "movups [rsp + 144], xmm4",
                    "movups [rsp + 160], xmm5",
                    "movups [rsp + 176], xmm6",
                    "movups [rsp + 192], xmm7",
                    concat!("mov dword ptr [rsp], ", $named),
                    "mov dword ptr [rsp + 4], 48",
                    "lea rax, [rsp + 224]",
                    "mov [rsp + 8], rax",
                    "lea rax, [rsp + 32]",
                    "mov [rsp + 16], rax",
                    concat!("mov ", $last, ", rsp"),
                    "call {to}",
                    "add rsp, 216",
                    "ret",
                    to = sym $to,
                )
            }
        };
    }

    trampoline!(sqlite3_mprintf, sqlite3_vmprintf, "8", "rsi");
    trampoline!(sqlite3_snprintf, sqlite3_vsnprintf, "24", "rcx");
    trampoline!(sqlite3_log, vlog, "16", "rdx");
    trampoline!(sqlite3_str_appendf, sqlite3_str_vappendf, "16", "rdx");
}

#[cfg(target_arch = "x86_64")]
pub use variadic::*;

/// What `sqlite3_log` has formatted.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn vlog(code: c_int, f: *const c_char, args: *mut Arguments) {
    crate::log::log(code, || crate::guard(Vec::new(), || format(f, &mut *args)));
}

/// Without `...` a text is told as it is.
#[cfg(not(target_arch = "x86_64"))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_log(code: c_int, text: *const c_char) {
    crate::log::log(code, || crate::connection::bytes(text).to_vec());
}

impl Str {
    fn append(&mut self, b: &[u8]) {
        if self.make_room(b.len()) {
            self.text.extend_from_slice(b);
        }
    }

    /// Whether so many bytes more have room. If not, what is there goes, too.
    fn make_room(&mut self, n: usize) -> bool {
        if self.failed != crate::OK {
            return false;
        }
        // The NUL behind it counts.
        if self.text.len() + n >= self.most {
            self.failed = crate::TOOBIG;
        } else if self.text.try_reserve(n + 1).is_err() {
            self.failed = crate::NOMEM;
        }
        if self.failed != crate::OK {
            self.text = Vec::new();
        }
        self.failed == crate::OK
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_new(db: *mut crate::connection::Db) -> *mut Str {
    let most = crate::connection::with(db, MOST as c_int, |d| {
        d.conn().map_or(MOST as c_int, |c| c.limit(iolite::engine::Limit::Length, None))
    });
    Box::into_raw(Box::new(Str { text: Vec::new(), most: most.max(0) as usize, failed: crate::OK }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_finish(s: *mut Str) -> *mut c_char {
    if s.is_null() {
        return null_mut();
    }
    let s = Box::from_raw(s);
    if s.text.is_empty() { null_mut() } else { crate::memory::copy_out(&s.text) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_free(s: *mut Str) {
    if !s.is_null() {
        drop(Box::from_raw(s));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_append(s: *mut Str, p: *const c_char, n: c_int) {
    if let Some(s) = s.as_mut().filter(|_| n > 0 && !p.is_null()) {
        s.append(std::slice::from_raw_parts(p as *const u8, n as usize));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_appendall(s: *mut Str, p: *const c_char) {
    if let Some(s) = s.as_mut().filter(|_| !p.is_null()) {
        s.append(std::ffi::CStr::from_ptr(p).to_bytes());
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_appendchar(s: *mut Str, n: c_int, c: c_char) {
    if let Some(s) = s.as_mut() {
        let n = n.max(0) as usize;
        if s.make_room(n) {
            s.text.resize(s.text.len() + n, c as u8);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_reset(s: *mut Str) {
    if let Some(s) = s.as_mut() {
        s.text.clear();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_truncate(s: *mut Str, n: c_int) {
    if let (Some(s), Ok(n)) = (s.as_mut(), usize::try_from(n)) {
        s.text.truncate(n);
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_errcode(s: *mut Str) -> c_int {
    s.as_ref().map_or(crate::NOMEM, |s| s.failed)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_length(s: *mut Str) -> c_int {
    s.as_ref().map_or(0, |s| s.text.len() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_str_value(s: *mut Str) -> *mut c_char {
    let Some(s) = s.as_mut().filter(|s| !s.text.is_empty()) else { return null_mut() };
    // A NUL that is no part of the text.
    s.text.push(0);
    s.text.pop();
    s.text.as_mut_ptr() as *mut c_char
}
