/** Whether a text looks like a person's name, also with digits of a number, an e-mail address or a telephone number. */
export const isLikeMember = (text: string): boolean => /@|^\D{2,}(\s\d[\d\s]+)?$|^\+?[\d\s()./-]{6,}$/.test(text);
