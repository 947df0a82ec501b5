"""One function per thing a person does with files; the only code the front ends call."""
