//! The count of bytes in use. A test binary of its own with one test: the count is the process's, and other tests claim.

use iolite_base::alloc::*;

#[test]
fn counted_over_threads_and_limited() {
    let before = used();
    claim(100).unwrap();
    assert_eq!(used(), before + 100);
    claim(10 << 20).unwrap();
    assert!(highwater(false) >= before + 100 + (10 << 20));
    release(10 << 20);
    assert_eq!(used(), before + 100);
    std::thread::spawn(|| (0..1000).for_each(|_| claim(7).unwrap())).join().unwrap();
    assert_eq!(used(), before + 7100);
    release(7100);
    assert_eq!(used(), before);

    hard_limit(before + 1000);
    assert!(claim(1001).is_err());
    claim(1000).unwrap();
    assert!(claim(1).is_err());
    release(1000);
    claim(600).unwrap();
    release(600);
    hard_limit(0);
    assert_eq!(used(), before);
}
