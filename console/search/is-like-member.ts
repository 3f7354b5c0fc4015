/** Whether a text looks like a person's name, an e-mail address or a telephone number. */
export const isLikeMember = (text: string): boolean => /@|^\D{2,}$|^\+?[\d\s()./-]{6,}$/.test(text);
