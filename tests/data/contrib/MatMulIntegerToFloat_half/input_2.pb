
BsaJ